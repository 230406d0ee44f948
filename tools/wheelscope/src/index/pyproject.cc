// Reads lists of requirements from TOML.
#include "index/settings.h"

#include "packaging/requirement.h"
#include "tables/toml.h"
#include "text/text.h"

namespace wheelscope {
namespace {

Result<std::vector<std::string>> members_of(const toml::table& groups, const std::string& wanted,
                                            int depth = 0) {
  constexpr int deepest = 16;
  if (depth > deepest) return fail(0, "group '" + wanted + "' includes itself");
  std::vector<std::string> found, names;
  for (const auto& [name, members] : groups) {
    names.emplace_back(name.str());
    if (canonical_name(name.str()) != canonical_name(wanted)) continue;
    const auto* list = members.as_array();
    if (!list) return fail(0, "group '" + wanted + "' is no list");
    for (const auto& member : *list) {
      if (const auto text = member.value<std::string>()) {
        found.push_back(*text);
        continue;
      }
      const auto* table = member.as_table();
      const auto inner = table ? (*table)["include-group"].value<std::string>() : std::nullopt;
      if (!inner) return fail(0, "group '" + wanted + "' has a member that is no requirement");
      for (auto& text : TRY(members_of(groups, *inner, depth + 1)))
        found.push_back(std::move(text));
    }
    return found;
  }
  return fail(0, "there is no group '" + wanted +
                     "'; the groups are: " + (names.empty() ? "none" : joined(names)));
}

}  // namespace

Result<std::vector<std::string>> project_dependencies(std::string_view text) {
  const auto file = TRY(parse_toml(text));
  std::vector<std::string> found;
  if (const auto* list = file["project"]["dependencies"].as_array()) {
    for (const auto& one : *list) found.push_back(one.value_or<std::string>(""));
  }
  return found;
}

Result<std::vector<std::string>> dependency_group(std::string_view text, const std::string& group) {
  const auto file = TRY(parse_toml(text));
  const auto* groups = file["dependency-groups"].as_table();
  return members_of(groups ? *groups : toml::table(), group);
}

}  // namespace wheelscope
