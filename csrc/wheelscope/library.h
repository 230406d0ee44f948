// One ELF file as facts.
#pragma once

#include "facts.h"

namespace wheelscope {

// Facts of the ELF file `path`; what cannot be read becomes findings.
LibraryFacts read_library(const std::string& path, Bytes file, const ScanOptions& options,
                          std::vector<Finding>& findings);

}  // namespace wheelscope
