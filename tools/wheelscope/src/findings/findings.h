// Findings: facts and verdicts that someone must act on, each with what to do.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "text/text.h"
#include "verdicts/verdicts.h"

namespace wheelscope {

struct Finding {
  enum class Level { note, warning, error };
  std::string id;
  Level level = Level::error;
  std::string place;  // a member, a library, or empty for the whole file
  std::string what;
  std::string fix;
  std::optional<std::uint64_t> offset = {};  // in the file, or in the member named by `place`
  auto operator<=>(const Finding&) const = default;
};

// A file with all that is known of it.
struct Item {
  Facts facts;
  Verdicts verdicts;
  std::vector<Finding> findings;
};

// Judges the facts and finds what is wrong with the file itself, whatever the policy.
Item examine(Facts facts);

Finding finding_of(const Problem& problem);

NAMES(Finding::Level, "note", "warning", "error")

}  // namespace wheelscope
