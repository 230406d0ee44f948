// The files METADATA and WHEEL in a wheel's dist-info folder.
#pragma once

#include <functional>

#include "facts/facts.h"

namespace wheelscope {

// Calls use(key, value) for each header, as Python's email parser finds them; the value is trimmed,
// and a folded one keeps its line ends.
void for_each_header(std::string_view text,
                     const std::function<void(std::string_view key, std::string_view value)>& use);

// Adds what the files say.
void parse_wheel_file(std::string_view text, WheelClaims& claims);
void parse_metadata(std::string_view text, WheelClaims& claims);

}  // namespace wheelscope
