// Versions of Python packages: 1.0, 2.0rc1, 1!3.post2, 2.15.0+cu130 (PEP 440).
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace wheelscope {

// In the order of the spec: dev releases before pre-releases before the release before its post
// releases; a local version after the public one.
struct Version {
  using Number = std::uint64_t;  // larger ones count as the largest
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

// Takes every spelling that the spec normalises (v1.0-Alpha2); nothing: no version.
std::optional<Version> parse_version(std::string_view text);

// The normalised spelling.
std::string to_string(const Version& version);

}  // namespace wheelscope
