// Requirements of Python packages and their parts: versions, specifiers, markers.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace wheelscope {

// Versions of Python packages: 1.0, 2.0rc1, 1!3.post2, 2.15.0+cu130 (PEP 440). They compare as the
// spec says: dev releases before pre-releases before the release before its post releases; a local
// version after the public one.
struct Version {
  using Number = std::uint64_t;  // too large numbers count as the largest
  struct Pre {
    char kind;  // a, b, r (for rc)
    Number number;
    auto operator<=>(const Pre&) const = default;
  };

  Number epoch = 0;
  std::vector<Number> release;
  std::optional<Pre> pre;
  std::optional<Number> post, dev;
  std::vector<std::variant<std::string, Number>> local;  // words sort before numbers

  bool is_prerelease() const { return pre || dev; }
  Version public_part() const;  // without the local part
  Version base() const;         // the epoch and the release alone

  friend std::strong_ordering operator<=>(const Version& a, const Version& b);
  friend bool operator==(const Version& a, const Version& b) { return (a <=> b) == 0; }
};

// Parses every spelling that the spec normalises (v1.0-Alpha2); nothing if it is not a version.
std::optional<Version> parse_version(std::string_view text);

// Returns the normalised spelling.
std::string to_string(const Version& version);

// Version specifiers of Python packages: ">=3.10", ">=2.10,<3", "==2.15.*" (PEP 440).
struct Specifier {
  std::string sign;  // == != <= >= < > ~= ===
  std::string bound;
};

// Parses one clause; nothing if it is not a specifier.
std::optional<Specifier> parse_specifier(std::string_view text);

// Parses clauses separated by commas; nothing if one is not a specifier.
std::optional<std::vector<Specifier>> parse_specifiers(std::string_view text);

// True if a version fulfils every clause; pre-releases count like any other version.
bool fulfils(const Version& version, const std::vector<Specifier>& specifiers);

// The same for a version's text. Only === can hold for a text that is not a version; it compares
// texts.
bool fulfils(std::string_view version, const Specifier& clause);

// The same for texts; nothing if the specifiers are invalid.
std::optional<bool> fulfils(std::string_view version, std::string_view specifiers);

// True if some release of a minor version (2.14 stands for 2.14.0, 2.14.1 ...) fulfils every
// clause. Invalid clauses count as fulfilled.
bool can_fulfil(std::string_view minor, std::string_view specifiers);

// Environment markers of requirements: python_version < "3.12" and extra == "cuda" (PEP 508). The
// map has the known variables of the spec (python_version, sys_platform ...).
using MarkerEnvironment = std::map<std::string, std::string, std::less<>>;

// Returns the environment of a CPython on Linux, without variables of the kernel (platform_release,
// platform_version).
MarkerEnvironment linux_environment(const std::string& python_version, const std::string& machine);

// Tells whether the marker holds; nothing if it is invalid or depends on an unknown variable. An
// empty marker always holds.
std::optional<bool> holds(std::string_view marker, const MarkerEnvironment& environment);

// True if its parentheses are nested too deep to be read, here and by installers.
bool nests_too_deep(std::string_view marker);

struct Requirement {
  std::string name;  // as written
  std::vector<std::string> extras;
  std::string specifiers, url, marker;
  std::string text;  // all of it
};

// Parses a requirement. Parts that are invalid stay empty; the name is whatever stands in its
// place.
Requirement parse_requirement(std::string_view text);

// Returns those of METADATA's requirements whose markers hold, with one of the extras or without.
std::vector<Requirement> requirements_here(const std::vector<std::string>& requires_dist,
                                           MarkerEnvironment environment,
                                           const std::vector<std::string>& extras = {});

// True if one of them names the project, whatever its marker says.
bool requires_project(const std::vector<std::string>& requires_dist, std::string_view project);

// True if a project may have this name (PEP 508).
bool is_project_name(std::string_view name);

// Normalises a name by PEP 503: lower case, with a dash for every run of dashes, dots and
// underscores.
std::string canonical_name(std::string_view name);

}  // namespace wheelscope
