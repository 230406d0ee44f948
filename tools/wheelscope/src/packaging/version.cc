// Parses and compares versions, and evaluates version specifiers, by PEP 440.
#include "packaging/requirement.h"

#include <algorithm>
#include <limits>

#include "text/text.h"

namespace wheelscope {
namespace {

bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z');
}
bool separates(char c) {
  return c == '.' || c == '-' || c == '_';
}

// Reads from the front of a lower-case text; leaves what it cannot read.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  bool done() const { return text_.empty(); }
  bool take(char c) {
    if (!text_.starts_with(c)) return false;
    text_.remove_prefix(1);
    return true;
  }

  std::optional<Version::Number> number() {
    const auto digits = text_.substr(0, std::ranges::find_if_not(text_, is_digit) - text_.begin());
    if (digits.empty()) return std::nullopt;
    text_.remove_prefix(digits.size());
    constexpr auto most = std::numeric_limits<Version::Number>::max();
    Version::Number value = 0;
    for (const char c : digits) {
      const auto digit = static_cast<Version::Number>(c - '0');
      value = value > (most - digit) / 10 ? most : value * 10 + digit;
    }
    return value;
  }

  // Reads [separator] word [separator] [number] for the first of the words that matches. Returns
  // the number, 0 if there is none, and leaves the word in `found`.
  std::optional<Version::Number> part(std::initializer_list<std::string_view> words,
                                      std::string_view& found) {
    auto rest = text_;
    if (!rest.empty() && separates(rest.front())) rest.remove_prefix(1);
    for (const auto word : words) {
      if (!rest.starts_with(word)) continue;
      found = word;
      text_ = rest.substr(word.size());
      const auto after_word = text_;
      if (!text_.empty() && separates(text_.front())) text_.remove_prefix(1);
      if (const auto value = number()) return value;
      // A separator without a number may belong to the next part.
      text_ = after_word;
      if (!text_.empty() && separates(text_.front()) &&
          (text_.size() == 1 || text_[1] == '+' || !is_word(text_[1])))
        text_.remove_prefix(1);
      return 0;
    }
    return std::nullopt;
  }

  // Reads -1, the old spelling of .post1.
  std::optional<Version::Number> dashed_post() {
    if (text_.size() < 2 || text_[0] != '-' || !is_digit(text_[1])) return std::nullopt;
    text_.remove_prefix(1);
    return number();
  }

  bool local(Version& version) {
    while (true) {
      const auto word = text_.substr(0, std::ranges::find_if_not(text_, is_word) - text_.begin());
      if (word.empty()) return false;
      if (std::ranges::all_of(word, is_digit)) {
        version.local.emplace_back(Parser(word).number().value());
      } else {
        version.local.emplace_back(std::string(word));
      }
      text_.remove_prefix(word.size());
      if (done()) return true;
      if (!separates(text_.front())) return false;
      text_.remove_prefix(1);
    }
  }

  std::string_view rest() const { return text_; }

 private:
  std::string_view text_;
};

// Compares releases with the same numbers: dev, pre, itself, post.
std::strong_ordering compare_suffix(const Version& a, const Version& b) {
  auto pre_rank = [](const Version& v) {
    if (v.pre) return 1;
    return !v.post && v.dev ? 0 : 2;  // a dev release of the release itself comes before its rc
  };
  if (auto order = pre_rank(a) <=> pre_rank(b); order != 0) return order;
  if (a.pre && *a.pre != *b.pre) return *a.pre <=> *b.pre;
  if (a.post.has_value() != b.post.has_value()) return a.post.has_value() <=> b.post.has_value();
  if (a.post && *a.post != *b.post) return *a.post <=> *b.post;
  if (a.dev.has_value() != b.dev.has_value()) return b.dev.has_value() <=> a.dev.has_value();
  if (a.dev) return *a.dev <=> *b.dev;
  return std::strong_ordering::equal;
}

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

Version Version::public_part() const {
  auto copy = *this;
  copy.local.clear();
  return copy;
}

Version Version::base() const {
  return {.epoch = epoch, .release = release};
}

std::strong_ordering operator<=>(const Version& a, const Version& b) {
  if (a.epoch != b.epoch) return a.epoch <=> b.epoch;
  for (std::size_t i = 0; i < std::max(a.release.size(), b.release.size()); ++i) {
    const auto left = i < a.release.size() ? a.release[i] : 0,
               right = i < b.release.size() ? b.release[i] : 0;
    if (left != right) return left <=> right;
  }
  if (auto order = compare_suffix(a, b); order != 0) return order;
  return std::lexicographical_compare_three_way(a.local.begin(), a.local.end(), b.local.begin(),
                                                b.local.end());
}

std::optional<Version> parse_version(std::string_view text) {
  const auto lowered = lower(trim(text));
  Parser parser(lowered);
  parser.take('v');
  Version version;
  auto first = parser.number();
  if (!first) return std::nullopt;
  if (parser.take('!')) {
    version.epoch = *first;
    first = parser.number();
    if (!first) return std::nullopt;
  }
  version.release.push_back(*first);
  while (parser.rest().size() > 1 && parser.rest()[0] == '.' && is_digit(parser.rest()[1])) {
    parser.take('.');
    version.release.push_back(parser.number().value());
  }
  std::string_view word;
  if (const auto number =
          parser.part({"alpha", "a", "beta", "b", "preview", "pre", "c", "rc"}, word)) {
    const char kind = word.front() == 'a' || word.front() == 'b' ? word.front() : 'r';
    version.pre = {kind, *number};
  }
  version.post = parser.dashed_post();
  if (!version.post) version.post = parser.part({"post", "rev", "r"}, word);
  version.dev = parser.part({"dev"}, word);
  if (parser.take('+') && !parser.local(version)) return std::nullopt;
  if (!parser.done()) return std::nullopt;
  return version;
}

std::string to_string(const Version& version) {
  std::string text = version.epoch ? std::to_string(version.epoch) + "!" : "";
  for (std::size_t i = 0; i < version.release.size(); ++i)
    text += (i ? "." : "") + std::to_string(version.release[i]);
  if (version.pre) {
    text += version.pre->kind == 'r' ? "rc" : std::string(1, version.pre->kind);
    text += std::to_string(version.pre->number);
  }
  if (version.post) text += ".post" + std::to_string(*version.post);
  if (version.dev) text += ".dev" + std::to_string(*version.dev);
  for (std::size_t i = 0; i < version.local.size(); ++i) {
    const auto* number = std::get_if<Version::Number>(&version.local[i]);
    text += (i ? "." : "+") +
            (number ? std::to_string(*number) : std::get<std::string>(version.local[i]));
  }
  return text;
}

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
