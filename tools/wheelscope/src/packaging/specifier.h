// Version specifiers of Python packages: ">=3.10", ">=2.10,<3", "==2.15.*" (PEP 440).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "packaging/version.h"

namespace wheelscope {

struct Specifier {
  std::string sign;  // == != <= >= < > ~= ===
  std::string bound;
};

// One clause; nothing where it is no specifier.
std::optional<Specifier> parse_specifier(std::string_view text);

// The clauses; nothing where one is no specifier.
std::optional<std::vector<Specifier>> parse_specifiers(std::string_view text);

// Whether a version fulfils every clause; pre-releases count like any other version.
bool fulfils(const Version& version, const std::vector<Specifier>& specifiers);

// The same for a version's text: only === can hold for one that is no version, and compares texts.
bool fulfils(std::string_view version, const Specifier& clause);

// The same for texts; nothing where the specifiers cannot be understood.
std::optional<bool> fulfils(std::string_view version, std::string_view specifiers);

// Whether some release of a minor version (2.14 stands for 2.14.0, 2.14.1 ...) fulfils every
// clause. Clauses that are not understood count as fulfilled.
bool can_fulfil(std::string_view minor, std::string_view specifiers);

}  // namespace wheelscope
