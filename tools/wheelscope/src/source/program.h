// Reads the environment of this program, and runs other programs for their output.
#pragma once

#include <string>
#include <vector>

#include "source/bytes.h"

namespace wheelscope {

// Returns an empty text if the variable is not set.
std::string environment_variable(const char* name);

// Returns the file of a program: the name itself if it has a slash, else the first such file in the
// folders of PATH; empty if there is none.
std::string find_program(const std::string& name);

// Returns the standard output of a program. A program that fails, writes more than a mebibyte or
// takes longer than `seconds` is stopped, and is an error.
Result<std::string> output_of(const std::vector<std::string>& command, int seconds);

}  // namespace wheelscope
