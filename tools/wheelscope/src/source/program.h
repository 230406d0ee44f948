// The environment of this program, and other programs, which are run for what they print.
#pragma once

#include <string>
#include <vector>

#include "source/bytes.h"

namespace wheelscope {

// Empty: it is not set.
std::string environment_variable(const char* name);

// The file of a program: itself if it has a slash, else the first of that name in the folders of
// PATH. Empty: there is none.
std::string find_program(const std::string& name);

// What the program wrote to its standard output. A program that fails, writes more than a mebibyte
// or takes longer than `seconds` is an error, and is ended.
Result<std::string> output_of(const std::vector<std::string>& command, int seconds);

}  // namespace wheelscope
