// Requirements of a wheel: torch[extra] (>=2.10) ; python_version > "3.9" (PEP 508).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "packaging/marker.h"

namespace wheelscope {

struct Requirement {
  std::string name;  // as written
  std::vector<std::string> extras;
  std::string specifiers, url, marker;
};

// What cannot be understood is left empty; the name is whatever stands where it should.
Requirement parse_requirement(std::string_view text);

// PEP 503: lower case, with a dash for every run of dashes, dots and underscores.
std::string canonical_name(std::string_view name);

}  // namespace wheelscope
