// A file from the command line, examined.
#pragma once

#include <string>

#include "findings/findings.h"

namespace wheelscope {

// Whether texts from the file are escaped, for a terminal.
enum class Texts { as_they_are, printable };

// A wheel, or a file with machine code, by its first bytes.
Result<Item> read_item(const std::string& path, const ScanOptions& options,
                       Texts texts = Texts::as_they_are);

}  // namespace wheelscope
