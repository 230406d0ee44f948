// Files and folders by name: expands paths, reads small texts and writes files.
#pragma once

#include <string>
#include <vector>

#include "source/source.h"

namespace wheelscope {

// Returns the files that a path stands for: the file itself, or every wheel and file with machine
// code in a folder, sorted.
Result<std::vector<std::string>> expand_path(const std::string& path);

// Returns the names in a folder, in no order; empty if it cannot be read.
std::vector<std::string> entries_of(const std::string& folder);

Result<std::string> read_text(const std::string& path);

// Replaces a file atomically and keeps its mode and owner. Programs that have it open, and other
// links to it, keep the old contents. A failure leaves nothing behind.
Result<void> write_file(const std::string& path, std::string_view contents);

}  // namespace wheelscope
