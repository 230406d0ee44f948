// The distributions that are installed in an environment: their dist-info folders, and what they
// say. PyPA's specification "Recording installed projects" describes them.
#pragma once

#include <string>
#include <vector>

#include "facts/machine.h"
#include "text/text.h"

namespace wheelscope {

struct Distribution {
  std::string name, version;  // the name as canonical_name spells it
  std::string folder;         // that it is installed in: a site-packages folder
  std::string dist_info;      // the path of its dist-info folder
};

// Of several with the same name, the first on Python's path; sorted by name.
std::vector<Distribution> list_distributions(const std::vector<std::string>& site_packages);

// The shared libraries that its RECORD names, as paths. Empty: there is none, or no RECORD.
std::vector<std::string> shared_libraries_of(const Distribution& distribution);

// The torch package on the path, from its files; torch is not imported.
std::optional<TorchFacts> find_torch(const std::vector<std::string>& site_packages);

// The libraries of CUDA that NVIDIA's distributions and torch's own folder bring.
std::vector<CudaLibraryFacts> find_cuda_libraries(const std::vector<std::string>& site_packages,
                                                  const std::optional<TorchFacts>& torch);

// What RECORD says of installed files, beside what is on the disk.
//   missing        RECORD has it, the disk does not
//   changed        it is not as it was installed
//   shortened      the same, and it has lost bytes: a copy that was not finished
//   foreign        code in a folder of the distribution that no RECORD has
//   other_python   a module for other Pythons only
//   other_machine  a module for another processor
enum class FileState { missing, changed, shortened, foreign, other_python, other_machine };

struct OddFile {
  FileState state = FileState::missing;
  std::string path;
  bool operator==(const OddFile&) const = default;
};

// Of each distribution, the files that are missing, changed or foreign, sorted; those that nobody
// misses (bytecode) are left out. Files that were written after RECORD are hashed, of the others
// the sizes are compared. Whole environments are asked for at once, since folders are shared.
std::vector<std::vector<OddFile>> compare_with_records(
    const std::vector<Distribution>& distributions, const std::string& prefix);

NAMES(FileState, "missing", "changed", "shortened", "foreign", "other-python", "other-machine")

}  // namespace wheelscope
