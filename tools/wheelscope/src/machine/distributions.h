// The distributions that are installed in an environment: their dist-info folders, and what they
// say. PyPA's specification "Recording installed projects" describes them.
#pragma once

#include <string>
#include <vector>

#include "facts/facts.h"
#include "facts/machine.h"
#include "text/text.h"

namespace wheelscope {

struct Distribution {
  std::string name, version;              // the name as canonical_name spells it
  std::string folder;                     // the site-packages folder that it is installed in
  std::string dist_info;                  // the path of its dist-info folder
  std::string origin = {};                // the address that it was installed from; empty: an index
  std::vector<std::string> sources = {};  // folders of an editable installation's modules

  // The path of a file that recorded_files() names.
  std::string path_of(const std::string& file) const;
};

// Lists them, sorted by name; of several with the same name, the first on Python's path.
std::vector<Distribution> list_distributions(const std::vector<std::string>& site_packages);

// The files that its RECORD names, as it spells them, and those of an editable installation's
// modules, as RECORD would; none without a RECORD.
std::vector<std::string> recorded_files(const Distribution& distribution);

// How to install it again as it was.
std::string reinstallation(const Distribution& distribution);

// What its METADATA says.
WheelClaims claims_of(const Distribution& distribution);

// The shared libraries that its RECORD names, as paths. Empty: there is none, or no RECORD.
std::vector<std::string> shared_libraries_of(const Distribution& distribution);

// The torch package on the path, from its files; torch is not imported.
std::optional<TorchFacts> find_torch(const std::vector<std::string>& site_packages);

// The libraries of CUDA that NVIDIA's distributions and torch's own folder bring.
std::vector<CudaLibraryFacts> find_cuda_libraries(const std::vector<std::string>& site_packages,
                                                  const std::optional<TorchFacts>& torch);

// How installed files differ from RECORD.
//   missing        in RECORD, but not on the disk
//   unreadable     for the user who runs this
//   changed        not as it was installed
//   shortened      changed, and shorter: an unfinished copy
//   foreign        code in a folder of the distribution that no RECORD has
//   other_python   a module for other Pythons only
//   other_machine  a module for another processor
enum class FileState {
  missing,
  unreadable,
  changed,
  shortened,
  foreign,
  other_python,
  other_machine
};

struct OddFile {
  FileState state = FileState::missing;
  std::string path;
  bool operator==(const OddFile&) const = default;
};

// Returns for each distribution the files that are missing, changed or foreign, sorted, except
// those that nobody needs (bytecode). Files written after RECORD are hashed; for the others, the
// sizes are compared. Takes whole environments at once, since folders are shared.
std::vector<std::vector<OddFile>> compare_with_records(
    const std::vector<Distribution>& distributions, const std::string& prefix);

NAMES(FileState, "missing", "unreadable", "changed", "shortened", "foreign", "other-python",
      "other-machine")

// --- The folders that Python looks for modules in besides site-packages: those of PYTHONPATH, and
// those that .pth files name, as editable installations do (path_files.cc). The documentation of
// Python's module `site` describes these files.
struct PathFile {
  std::vector<std::string> folders;
  bool is_complete = true;  // modules come from no other place
};

PathFile read_path_file(const std::string& path);

// The .pth files of a site-packages folder, in Python's order.
std::vector<std::string> path_files_in(const std::string& folder);

// The folders of PYTHONPATH, and site-packages with what their .pth files add, in Python's order.
std::vector<std::string> import_folders(const std::vector<std::string>& site_packages);

}  // namespace wheelscope
