// Evaluates conditions of Python code as far as they are about the platform and the version of
// Python: sys.platform == "win32" or sys.version_info < (3, 9). All else is unknown.
#pragma once

#include <compare>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace wheelscope {

// The Python on Linux that would run the code.
struct PythonTarget {
  std::vector<long> version{3};  // as many numbers as are known
  std::string architecture;
};

PythonTarget target_of(const std::string& version, const std::string& architecture);

// A value that is known; monostate: unknown. A tuple of numbers is a version.
struct PythonNone {
  auto operator<=>(const PythonNone&) const = default;
};
using PythonValue = std::variant<std::monostate, PythonNone, bool, long, std::string,
                                 std::vector<long>, std::vector<std::string>>;

// Names of the file whose values are known, by assignments before.
using PythonConstants = std::map<std::string, PythonValue, std::less<>>;

PythonValue evaluate(std::string_view expression, const PythonTarget& target,
                     const PythonConstants& constants);

// Nothing: it cannot be told.
std::optional<bool> truth_of(const PythonValue& value);

}  // namespace wheelscope
