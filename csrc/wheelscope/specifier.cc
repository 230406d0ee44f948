// Evaluates version specifiers (PEP 440) for plain releases.
#include "specifier.h"

#include <algorithm>

#include "claims.h"
#include "version.h"

namespace wheelscope {
namespace {

bool same(std::string_view a, std::string_view b) {
  return !older(a, b) && !older(b, a);
}

// Whether `version` starts with the numbers of `prefix`: 2.15.1 with 2.15.
bool has_prefix(std::string_view version, std::string_view prefix) {
  return version == prefix || (version.starts_with(prefix) && version[prefix.size()] == '.') ||
         same(version, prefix);
}

bool fulfils_clause(std::string_view version, std::string_view clause) {
  const auto split = clause.find_first_not_of("<>=!~");
  if (split == 0 || split == clause.npos) return true;
  const auto sign = clause.substr(0, split);
  auto bound = clause.substr(split);
  bound.remove_prefix(std::min(bound.find_first_not_of(' '), bound.size()));
  const bool wildcard = bound.ends_with(".*");
  if (wildcard) bound.remove_suffix(2);
  if (sign == ">=") return !older(version, bound);
  if (sign == "<=") return !older(bound, version);
  if (sign == ">") return older(bound, version);
  if (sign == "<") return older(version, bound);
  if (sign == "==" || sign == "===")
    return wildcard ? has_prefix(version, bound) : same(version, bound);
  if (sign == "!=") return !(wildcard ? has_prefix(version, bound) : same(version, bound));
  if (sign == "~=")
    return !older(version, bound) && has_prefix(version, bound.substr(0, bound.rfind('.')));
  return true;
}

}  // namespace

bool fulfils(std::string_view version, std::string_view specifiers) {
  while (!specifiers.empty()) {
    auto clause = specifiers.substr(0, specifiers.find(','));
    specifiers.remove_prefix(std::min(clause.size() + 1, specifiers.size()));
    const auto first = clause.find_first_not_of(' ');
    if (first == clause.npos) continue;
    clause = clause.substr(first, clause.find_last_not_of(' ') - first + 1);
    if (!fulfils_clause(version, clause)) return false;
  }
  return true;
}

std::string_view specifiers_of(std::string_view requirement) {
  requirement = requirement.substr(0, requirement.find(';'));
  const auto first = requirement.find_first_of("<>=!~", requirement_name(requirement).size());
  if (first == requirement.npos) return {};
  requirement.remove_prefix(first);
  return requirement.substr(0, requirement.find_last_not_of(" )") + 1);
}

}  // namespace wheelscope
