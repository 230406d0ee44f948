// Versions like 2.10 or 525.60.13, compared by their numbers.
#pragma once

#include <string>
#include <string_view>

namespace wheelscope {

// Whether `a` is an older version than `b`; missing numbers count as 0, other characters separate
// numbers.
bool older(std::string_view a, std::string_view b);

}  // namespace wheelscope
