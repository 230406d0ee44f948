// Files and folders by name: what a path stands for, small texts in and files out.
#pragma once

#include <string>
#include <vector>

#include "source/source.h"

namespace wheelscope {

// The files that a path stands for: itself, or in a folder every wheel and every file with machine
// code, sorted.
Result<std::vector<std::string>> expand_path(const std::string& path);

// The names of what is in a folder, in no order; none: it cannot be read.
std::vector<std::string> entries_of(const std::string& folder);

Result<std::string> read_text(const std::string& path);

// Replaces a file at once, with its mode and owner: whoever has it open, or linked elsewhere, keeps
// the old one. A failure leaves nothing behind.
Result<void> write_file(const std::string& path, std::string_view contents);

}  // namespace wheelscope
