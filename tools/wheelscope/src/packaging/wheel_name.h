// What the file name of a wheel says of it.
#pragma once

#include "facts/facts.h"

namespace wheelscope {

// name-version(-build)?-python-abi-platform(-variant)?.whl (PEP 427, and 825 for variants), its
// compressed tags expanded.
Result<WheelClaims> parse_wheel_name(std::string_view file_name);

}  // namespace wheelscope
