// One file with machine code as facts: an ELF file, a static library, or loose device code.
#pragma once

#include "facts/facts.h"

namespace wheelscope {

// Facts of the file at `path`, if it is one of these by its contents; what cannot be read becomes
// problems. All that is kept is taken from the allowance.
std::optional<LibraryFacts> read_library(const std::string& path, Bytes file,
                                         const ScanOptions& options, Allowance& memory,
                                         ProblemList& problems);

// The same of a shared library's first bytes; nothing: more of them are needed.
std::optional<LibraryFacts> read_library_start(const std::string& path, Bytes start,
                                               std::uint64_t size, Allowance& memory);

}  // namespace wheelscope
