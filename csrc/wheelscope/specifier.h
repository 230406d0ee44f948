// Version specifiers of Python packages: ">=3.10", ">=2.10,<3", "==2.15.*".
#pragma once

#include <string_view>

namespace wheelscope {

// Whether a release (3.11, 2.15.0) fulfils every clause. A clause that is not understood counts as
// fulfilled.
bool fulfils(std::string_view version, std::string_view specifiers);

// The specifiers of a requirement: ">=2.10" from "torch (>=2.10) ; python_version > '3'".
std::string_view specifiers_of(std::string_view requirement);

}  // namespace wheelscope
