// Evaluates version specifiers by PEP 440.
#include "packaging/requirement.h"

#include <algorithm>

#include "text/text.h"

namespace wheelscope {
namespace {

// True if ==2.15.* holds: the version, padded with zeros, starts with these numbers.
bool has_prefix(const Version& version, const Version& prefix) {
  if (version.epoch != prefix.epoch) return false;
  for (std::size_t i = 0; i < prefix.release.size(); ++i) {
    if ((i < version.release.size() ? version.release[i] : 0) != prefix.release[i]) return false;
  }
  return true;
}

bool equals(const Version& version, std::string_view bound) {
  if (bound.ends_with(".*")) {
    const auto prefix = parse_version(bound.substr(0, bound.size() - 2));
    return prefix && has_prefix(version, *prefix);
  }
  const auto wanted = parse_version(bound);
  return wanted && (wanted->local.empty() ? version.public_part() : version) == *wanted;
}

bool is_compatible(const Version& version, const Version& bound) {
  auto prefix = bound.base();
  prefix.release.pop_back();
  return version.public_part() >= bound && has_prefix(version, prefix);
}

// True if <1.0 holds, which excludes pre-releases of 1.0 unless the bound is one itself.
bool is_less(const Version& version, Version bound) {
  if (!bound.is_prerelease()) bound.dev = 0;
  return version < bound;
}

// True if >1.0 holds, which excludes post-releases of 1.0 and local versions unless the bound is a
// post-release.
bool is_greater(const Version& version, Version bound) {
  if (bound.dev) {
    ++*bound.dev;
    return version >= bound;
  }
  if (bound.post) {
    ++*bound.post;
    bound.dev = 0;
    return version >= bound;
  }
  return version > bound && !(version.base() == bound.base() && version.pre == bound.pre);
}

// True if ===1.0-Special holds, which compares texts, not versions.
bool has_spelling(std::string_view version, const Specifier& clause) {
  return lower(version) == lower(clause.bound);
}

bool fulfils_clause(const Version& version, const Specifier& clause) {
  const auto& sign = clause.sign;
  if (sign == "===") return has_spelling(to_string(version), clause);
  if (sign == "==") return equals(version, clause.bound);
  if (sign == "!=") return !equals(version, clause.bound);
  const auto bound = parse_version(clause.bound).value();
  if (sign == "~=") return is_compatible(version, bound);
  if (sign == ">=") return version.public_part() >= bound;
  if (sign == "<=") return version.public_part() <= bound;
  return sign == "<" ? is_less(version, bound) : is_greater(version, bound);
}

// True if the spec allows this bound after this sign.
bool is_valid(const Specifier& clause) {
  auto bound = std::string_view(clause.bound);
  if (bound.find_first_of(" \t\n\r\f\v;)") != bound.npos) return false;
  if (clause.sign == "===") return true;  // any text, even none
  const bool equality = clause.sign == "==" || clause.sign == "!=";
  const bool prefix = equality && bound.ends_with(".*");
  if (prefix) bound.remove_suffix(2);
  const auto version = parse_version(bound);
  if (!version || (!equality && !version->local.empty())) return false;
  if (prefix && (version->pre || version->post || version->dev || !version->local.empty()))
    return false;
  return clause.sign != "~=" || version->release.size() > 1;
}

// Returns versions that stand for all releases of a minor version: its first release, and those
// around each bound.
std::vector<Version> candidates(const Version& minor, const std::vector<Specifier>& clauses) {
  auto with_patch = [&](Version::Number patch) {
    auto version = minor;
    version.release.resize(2);
    version.release.push_back(patch);
    return version;
  };
  constexpr Version::Number last = 9999;
  std::vector<Version> versions{minor, with_patch(0), with_patch(last)};
  for (const auto& clause : clauses) {
    auto text = std::string_view(clause.bound);
    if (text.ends_with(".*")) text.remove_suffix(2);
    const auto bound = parse_version(text);
    if (!bound || bound->release.size() < 3 || !has_prefix(*bound, minor)) continue;
    versions.push_back(*bound);
    versions.push_back(with_patch(bound->release[2] + 1));
    if (bound->release[2] > 0) versions.push_back(with_patch(bound->release[2] - 1));
  }
  return versions;
}

}  // namespace

std::optional<Specifier> parse_specifier(std::string_view text) {
  text = trim(text);
  for (const std::string_view sign : {"===", "==", "!=", "<=", ">=", "~=", "<", ">"}) {
    if (!text.starts_with(sign)) continue;
    Specifier clause{std::string(sign), std::string(trim(text.substr(sign.size())))};
    return is_valid(clause) ? std::optional(std::move(clause)) : std::nullopt;
  }
  return std::nullopt;
}

std::optional<std::vector<Specifier>> parse_specifiers(std::string_view text) {
  std::vector<Specifier> clauses;
  for (const auto& part : split(text, ',')) {
    if (trim(part).empty()) continue;
    const auto clause = parse_specifier(part);
    if (!clause) return std::nullopt;
    clauses.push_back(*clause);
  }
  return clauses;
}

bool fulfils(const Version& version, const std::vector<Specifier>& specifiers) {
  return std::ranges::all_of(
      specifiers, [&](const Specifier& clause) { return fulfils_clause(version, clause); });
}

bool fulfils(std::string_view version, const Specifier& clause) {
  if (clause.sign == "===") return has_spelling(version, clause);
  const auto parsed = parse_version(version);
  return parsed && fulfils_clause(*parsed, clause);
}

std::optional<bool> fulfils(std::string_view version, std::string_view specifiers) {
  const auto clauses = parse_specifiers(specifiers);
  if (!clauses) return std::nullopt;
  return std::ranges::all_of(*clauses,
                             [&](const Specifier& clause) { return fulfils(version, clause); });
}

bool can_fulfil(std::string_view minor, std::string_view specifiers) {
  const auto version = parse_version(minor);
  const auto clauses = parse_specifiers(specifiers);
  if (!version || !clauses) return true;
  if (version->release.size() > 2) return fulfils(*version, *clauses);
  return std::ranges::any_of(candidates(*version, *clauses), [&](const Version& candidate) {
    return fulfils(candidate, *clauses);
  });
}

}  // namespace wheelscope
