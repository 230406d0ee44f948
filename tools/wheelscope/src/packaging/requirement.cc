// Parses requirements, and evaluates their environment markers by PEP 508; unknown variables leave
// the answer open.
//
//   marker     = and-group ("or" and-group)*       and-group = term ("and" term)*
//   term       = operand operator operand | "(" marker ")"
//   operand    = a variable's name | a quoted text

#include <algorithm>

#include "packaging/requirement.h"
#include "text/text.h"

namespace wheelscope {
namespace {

using Truth = std::optional<bool>;

constexpr int deepest = 100;  // of parentheses

Truth both(Truth a, Truth b) {
  if (a == false || b == false) return false;
  return a && b ? Truth(true) : std::nullopt;
}
Truth either(Truth a, Truth b) {
  if (a == true || b == true) return true;
  return a && b ? Truth(false) : std::nullopt;
}

bool is_name(char c) {
  return is_alphanumeric(c) || c == '_' || c == '.';
}

// Returns the spec's name of a variable; older files spell some with a dot.
std::string canonical_variable(std::string_view name) {
  static constexpr std::string_view known[] = {"python_version",
                                               "python_full_version",
                                               "os_name",
                                               "sys_platform",
                                               "platform_release",
                                               "platform_system",
                                               "platform_version",
                                               "platform_machine",
                                               "extra",
                                               "platform_python_implementation",
                                               "extras",
                                               "implementation_name",
                                               "dependency_groups",
                                               "implementation_version"};
  if (name == "python_implementation") return "platform_python_implementation";
  std::string text(name);
  std::ranges::replace(text, '.', '_');
  return contains(known, text) ? text : "";
}

struct Operand {
  std::string text;      // of a quoted text
  std::string variable;  // otherwise
};

class Evaluator {
 public:
  Evaluator(std::string_view text, const MarkerEnvironment& environment)
      : text_(text), environment_(environment) {}

  Truth run() {
    const auto truth = any();
    skip_blanks();
    return text_.empty() && !broken_ ? truth : std::nullopt;
  }

 private:
  void skip_blanks() {
    text_.remove_prefix(std::min(text_.find_first_not_of(" \t\n\r"), text_.size()));
  }
  bool take(std::string_view token) {
    skip_blanks();
    if (!text_.starts_with(token)) return false;
    const bool word = is_name(token.back());
    if (word && text_.size() > token.size() && is_name(text_[token.size()])) return false;
    text_.remove_prefix(token.size());
    return true;
  }

  Truth any() {
    auto truth = all();
    while (!broken_ && take("or")) truth = either(truth, all());
    return truth;
  }
  Truth all() {
    auto truth = term();
    while (!broken_ && take("and")) truth = both(truth, term());
    return truth;
  }
  Truth term() {
    if (take("(")) {
      if (++depth_ > deepest) return fail();
      const auto truth = any();
      --depth_;
      return take(")") ? truth : fail();
    }
    const auto left = operand();
    const auto sign = broken_ ? std::string() : operation();
    const auto right = broken_ ? Operand{} : operand();
    return broken_ ? std::nullopt : compare(left, sign, right);
  }
  Truth fail() {
    broken_ = true;
    return std::nullopt;
  }

  Operand operand() {
    skip_blanks();
    if (text_.starts_with('\'') || text_.starts_with('"')) {
      const auto end = text_.find(text_.front(), 1);
      if (end == text_.npos) return fail(), Operand{};
      Operand result{.text = std::string(text_.substr(1, end - 1))};
      text_.remove_prefix(end + 1);
      return result;
    }
    std::size_t length = 0;
    while (length < text_.size() && is_name(text_[length])) ++length;
    Operand result{.variable = canonical_variable(text_.substr(0, length))};
    text_.remove_prefix(length);
    if (result.variable.empty()) fail();
    return result;
  }

  std::string operation() {
    for (const auto* sign : {"===", "==", "~=", "!=", "<=", ">=", "<", ">", "in"}) {
      if (take(sign)) return sign;
    }
    if (take("not") && take("in")) return "not in";
    fail();
    return {};
  }

  Truth compare(Operand left, const std::string& sign, Operand right) {
    if (left.variable.empty() == right.variable.empty()) return fail();
    const auto key = left.variable.empty() ? right.variable : left.variable;
    const auto found = environment_.find(key);
    if (found == environment_.end()) return std::nullopt;
    (left.variable.empty() ? right : left).text = found->second;
    if (key == "extra") {
      left.text = canonical_name(left.text);
      right.text = canonical_name(right.text);
    }
    const bool is_version = key == "python_version" || key == "python_full_version" ||
                            key == "implementation_version" || key == "platform_release";
    if (is_version && sign != "in" && sign != "not in") {
      if (const auto clause = parse_specifier(sign + right.text))
        return fulfils(left.text, *clause);
    }
    if (sign == "in") return right.text.find(left.text) != std::string::npos;
    if (sign == "not in") return right.text.find(left.text) == std::string::npos;
    if (sign == "==") return left.text == right.text;
    if (sign == "!=") return left.text != right.text;
    // Texts have no order: less or greater never holds.
    if (sign == "<" || sign == ">") return false;
    if (sign == "<=" || sign == ">=") return left.text == right.text;
    return std::nullopt;  // ~= and === compare versions only
  }

  std::string_view text_;
  const MarkerEnvironment& environment_;
  int depth_ = 0;
  bool broken_ = false;
};

}  // namespace

bool is_project_name(std::string_view name) {
  return !name.empty() && is_alphanumeric(name.front()) && is_alphanumeric(name.back()) &&
         std::ranges::all_of(
             name, [&](char c) { return is_alphanumeric(c) || c == '-' || c == '_' || c == '.'; });
}

Requirement parse_requirement(std::string_view text) {
  Requirement requirement{.text = std::string(text)};
  text = trim(text);
  const auto name = text.substr(0, text.find_first_of(" \t\n;<>=!~([@"));
  requirement.name = name;
  text = trim(text.substr(name.size()));
  if (text.starts_with('[')) {
    const auto end = text.find(']');
    for (const auto& extra : split(text.substr(1, end == text.npos ? end : end - 1), ',')) {
      if (const auto word = trim(extra); !word.empty()) requirement.extras.emplace_back(word);
    }
    text = end == text.npos ? std::string_view() : trim(text.substr(end + 1));
  }
  if (text.starts_with('@')) {  // a URL may have a semicolon; the marker's follows a blank
    const auto end = std::min(text.find(" ;"), text.size());
    requirement.url = trim(text.substr(1, end - 1));
    requirement.marker = trim(text.substr(std::min(end + 2, text.size())));
    return requirement;
  }
  const auto end = std::min(text.find(';'), text.size());
  auto specifiers = trim(text.substr(0, end));
  if (specifiers.starts_with('(') && specifiers.ends_with(')'))
    specifiers = trim(specifiers.substr(1, specifiers.size() - 2));
  requirement.specifiers = specifiers;
  requirement.marker = trim(text.substr(std::min(end + 1, text.size())));
  return requirement;
}

std::string canonical_name(std::string_view name) {
  std::string text;
  for (const char c : lower(name)) {
    const bool separator = c == '-' || c == '_' || c == '.';
    if (!separator)
      text += c;
    else if (!text.ends_with('-'))
      text += '-';
  }
  return text;
}

MarkerEnvironment linux_environment(const std::string& python_version, const std::string& machine) {
  const auto full = python_version.find('.') == python_version.rfind('.') ? python_version + ".0"
                                                                          : python_version;
  const auto second_dot = full.find('.', full.find('.') + 1);
  return {{"python_version", full.substr(0, second_dot)},
          {"python_full_version", full},
          {"implementation_version", full},
          {"implementation_name", "cpython"},
          {"platform_python_implementation", "CPython"},
          {"os_name", "posix"},
          {"sys_platform", "linux"},
          {"platform_system", "Linux"},
          {"platform_machine", machine},
          {"extra", ""}};
}

std::optional<bool> holds(std::string_view marker, const MarkerEnvironment& environment) {
  if (trim(marker).empty()) return true;
  return Evaluator(marker, environment).run();
}

std::vector<Requirement> requirements_here(const std::vector<std::string>& requires_dist,
                                           MarkerEnvironment environment,
                                           const std::vector<std::string>& extras) {
  std::vector<Requirement> found;
  for (const auto& text : requires_dist) {
    auto requirement = parse_requirement(text);
    environment["extra"] = "";
    if (holds(requirement.marker, environment) == true ||
        std::ranges::any_of(extras, [&](const std::string& extra) {
          environment["extra"] = canonical_name(extra);
          return holds(requirement.marker, environment) == true;
        }))
      found.push_back(std::move(requirement));
  }
  return found;
}

bool requires_project(const std::vector<std::string>& requires_dist, std::string_view project) {
  return std::ranges::any_of(requires_dist, [&](const std::string& text) {
    return canonical_name(parse_requirement(text).name) == project;
  });
}

bool nests_too_deep(std::string_view marker) {
  int depth = 0;
  char quote = '\0';
  for (const char c : marker) {
    if (quote != '\0') {
      if (c == quote) quote = '\0';
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == '(' && ++depth > deepest) {
      return true;
    } else if (c == ')') {
      --depth;
    }
  }
  return false;
}

}  // namespace wheelscope
