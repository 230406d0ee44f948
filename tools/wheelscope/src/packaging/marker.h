// Environment markers of requirements: python_version < "3.12" and extra == "cuda" (PEP 508).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace wheelscope {

// The variables of the spec (python_version, sys_platform ...) that are known.
using MarkerEnvironment = std::map<std::string, std::string, std::less<>>;

// The environment of a CPython on Linux; nothing is said of the kernel (platform_release,
// platform_version).
MarkerEnvironment linux_environment(const std::string& python_version, const std::string& machine);

// Whether the marker holds. Nothing: it is no marker, or depends on a variable that is not known.
// An empty marker always holds.
std::optional<bool> holds(std::string_view marker, const MarkerEnvironment& environment);

// Whether its parentheses are nested too deep for it to be read, here and by installers.
bool nests_too_deep(std::string_view marker);

}  // namespace wheelscope
