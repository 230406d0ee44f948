// What RECORD says of installed files, beside what is on the disk.
#pragma once

#include <string>
#include <vector>

#include "machine/distributions.h"

namespace wheelscope {

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

const char* name_of(FileState state);

}  // namespace wheelscope
