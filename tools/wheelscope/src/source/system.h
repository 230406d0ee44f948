// What the operating system gives this program: files and folders by name, variables of the
// environment, and the output of other programs.
#pragma once

#include <string>
#include <vector>

#include "source/bytes.h"

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

// Returns an empty text if the variable is not set.
std::string environment_variable(const char* name);

// Returns the file of a program: the name itself if it has a slash, else the first such file in the
// folders of PATH; empty if there is none.
std::string find_program(const std::string& name);

// Returns the standard output of a program. A program that fails, writes more than a mebibyte or
// takes longer than `seconds` is stopped, and is an error.
Result<std::string> output_of(const std::vector<std::string>& command, int seconds);

}  // namespace wheelscope
