// What imports make of an environment's libraries that do not load: needed, optional, or decided by
// Python code.
#pragma once

#include <set>

#include "answers/environment.h"
#include "loader/disk.h"

namespace wheelscope {

struct FilesSeen {
  std::vector<std::string> libraries;    // all of the environment's
  std::set<std::string> lost;            // files that Python cannot use, of whatever kind
  std::set<std::string> opened_by_path;  // by Python code, if at all: libraries that do not load
  std::set<std::string> loading_families;
};

// Completes the verdicts: what each broken library is needed for, and whether an import of each
// distribution loads, also by what it imports from others.
void judge_imports(std::vector<DistributionVerdict>& verdicts, const FilesSeen& seen,
                   const PythonFacts& python, Disk& disk);

}  // namespace wheelscope
