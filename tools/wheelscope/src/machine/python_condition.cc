// A recursive parser of Python's expressions. What it does not evaluate it still parses, so that
// `unknown() and False` is false and `unknown() or f(x)` is unknown; on anything else it gives up.
#include "machine/python_syntax.h"

#include <algorithm>
#include <charconv>

#include "text/text.h"

namespace wheelscope {
namespace {

using Unknown = std::monostate;

// The assumed value of __name__: it is not __main__, and nothing else is known about it.
constexpr std::string_view imported_name = "<imported>";

struct PythonToken {
  enum class Kind { name, number, text, sign, end } kind = Kind::end;
  std::string text;
};

std::vector<PythonToken> tokens_of(std::string_view text) {
  using Kind = PythonToken::Kind;
  std::vector<PythonToken> tokens;
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    auto end = i + 1;
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f') {
      i = end;
      continue;
    }
    if (starts_name(c) || is_digit(c)) {
      while (end < text.size() && (starts_name(text[end]) || is_digit(text[end]))) ++end;
      const bool is_prefix =
          end < text.size() && (text[end] == '"' || text[end] == '\'') && end - i <= 2;
      if (!is_prefix || is_digit(c))
        tokens.push_back(
            {is_digit(c) ? Kind::number : Kind::name, std::string(text.substr(i, end - i))});
      else if (text.substr(i, end - i).find_first_of("fFbB") != text.npos)
        tokens.push_back({Kind::sign, "?"});  // a text that is not known
    } else if (c == '"' || c == '\'') {
      while (end < text.size() && text[end] != c) end += text[end] == '\\' ? 2 : 1;
      end = std::min(end, text.size());
      tokens.push_back({Kind::text, std::string(text.substr(i + 1, end - i - 1))});
      end = std::min(end + 1, text.size());
    } else {
      constexpr std::string_view two[] = {"==", "!=", "<=", ">=", "**",
                                          "//", "<<", ">>", ":=", "->"};
      if (contains(two, text.substr(i, 2))) ++end;
      tokens.push_back({Kind::sign, std::string(text.substr(i, end - i))});
    }
    i = end;
  }
  tokens.push_back({});
  return tokens;
}

class Evaluator {
 public:
  Evaluator(std::string_view text, const PythonTarget& target, const PythonConstants& constants)
      : tokens_(tokens_of(text)), target_(target), constants_(constants) {}

  PythonValue run() {
    auto value = expression();
    return failed_ || token().kind != Kind::end ? PythonValue() : value;
  }

 private:
  using Kind = PythonToken::Kind;

  const PythonToken& token() const { return tokens_[at_]; }
  bool take(std::string_view text) {
    if ((token().kind != Kind::sign && token().kind != Kind::name) || token().text != text)
      return false;
    ++at_;
    return true;
  }
  PythonValue give_up() {
    failed_ = true;
    at_ = tokens_.size() - 1;
    return {};
  }

  PythonValue expression() {
    constexpr int deepest = 60;
    if (++depth_ > deepest) return give_up();
    auto value = disjunction();
    if (take("if")) {
      const auto condition = truth_of(disjunction());
      if (!take("else")) return give_up();
      auto other = expression();
      value = !condition ? PythonValue() : *condition ? value : other;
    }
    --depth_;
    return value;
  }

  // Evaluates `and` if `stops` is false, `or` if it is true.
  template <class Next>
  PythonValue chain(std::string_view word, bool stops, const Next& next) {
    auto value = next();
    while (take(word)) {
      const auto left = truth_of(value);
      auto right = next();
      if (left == stops) continue;
      value = left ? right : truth_of(right) == stops ? PythonValue(stops) : PythonValue();
    }
    return value;
  }
  PythonValue disjunction() {
    return chain("or", true, [&] { return conjunction(); });
  }
  PythonValue conjunction() {
    return chain("and", false, [&] { return negation(); });
  }
  PythonValue negation() {
    bool negated = false, any = false;
    for (; take("not"); any = true) negated = !negated;
    auto value = comparison();
    if (!any) return value;
    const auto truth = truth_of(value);
    return truth ? PythonValue(*truth != negated) : PythonValue();
  }

  PythonValue comparison() {
    auto left = sum();
    PythonValue result = left;
    for (bool first = true;; first = false) {
      std::string sign;
      for (const auto* one : {"==", "!=", "<=", ">=", "<", ">", "in", "is"}) {
        if (take(one)) {
          sign = one;
          break;
        }
      }
      if (sign.empty() && take("not")) {
        if (!take("in")) return give_up();
        sign = "not in";
      }
      if (sign == "is" && take("not")) sign = "is not";
      if (sign.empty()) return result;
      auto right = sum();
      auto compared = compare(left, sign, right);
      result = first ? compared : PythonValue();  // a < b < c is not evaluated
      left = std::move(right);
    }
  }

  static PythonValue compare(const PythonValue& a, const std::string& sign, const PythonValue& b) {
    if (std::holds_alternative<Unknown>(a) || std::holds_alternative<Unknown>(b)) return {};
    if (sign == "in" || sign == "not in") {
      const auto* text = std::get_if<std::string>(&a);
      const auto* list = std::get_if<std::vector<std::string>>(&b);
      const auto* whole = std::get_if<std::string>(&b);
      if (!text || (!list && !whole) || (whole && *whole == imported_name)) return {};
      const bool inside = list ? contains(*list, *text) : whole->find(*text) != whole->npos;
      return inside == (sign == "in");
    }
    if (sign == "==" || sign == "is") return a == b;
    if (sign == "!=" || sign == "is not") return a != b;
    if (a.index() != b.index()) return {};
    const bool less = a < b, more = b < a;
    return sign == "<" ? less : sign == ">" ? more : sign == "<=" ? !more : !less;
  }

  // Arithmetic: powers of two in sys.maxsize > 2**32 alone.
  PythonValue sum() {
    auto value = atom();
    while (token().kind == Kind::sign) {
      constexpr std::string_view signs[] = {"+",  "-",  "*", "/", "%", "**", "//",
                                            "<<", ">>", "|", "&", "^", "@"};
      if (!contains(signs, token().text)) break;
      const auto sign = token().text;
      ++at_;
      const auto right = atom();
      const auto *a = std::get_if<long>(&value), *b = std::get_if<long>(&right);
      value = sign == "**" && a && b && *a == 2 && *b >= 0 && *b < 62 ? PythonValue(1L << *b)
                                                                      : PythonValue();
    }
    return value;
  }

  PythonValue atom() {
    if (take("-") || take("+") || take("~")) {
      (void)atom();
      return {};
    }
    if (take("await") || take("lambda") || take("yield")) return give_up();
    if (take("(")) return trailers(list(")"), {});
    if (take("[")) return trailers(list("]"), {});
    if (take("{")) {
      (void)list("}");
      return trailers({}, {});
    }
    auto next = token();
    if (next.kind == Kind::end) return give_up();
    ++at_;
    if (next.kind == Kind::text) {
      while (token().kind == Kind::text) next.text += tokens_[at_++].text;
      return trailers(next.text, {});
    }
    if (next.kind == Kind::number) {
      std::erase(next.text, '_');
      long number = 0;
      const auto [end, error] =
          std::from_chars(next.text.data(), next.text.data() + next.text.size(), number);
      const bool whole = error == std::errc() && end == next.text.data() + next.text.size();
      return trailers(whole ? PythonValue(number) : PythonValue(), {});
    }
    if (next.kind == Kind::name) return trailers({}, next.text);
    return next.text == "?" ? trailers({}, {}) : give_up();
  }

  // Reads the contents of brackets: one value, or a tuple if there is a comma.
  PythonValue list(std::string_view close) {
    std::vector<PythonValue> values;
    bool comma = close != ")", plain = true;
    while (!take(close)) {
      if (failed_ || token().kind == Kind::end) return give_up();
      if (take(",")) {
        comma = true;
      } else if (take(":") || take("=") || take("*") || take("**") || take("for") || take("in") ||
                 take("if") || take("else") || take(":=") || take("async")) {
        plain = false;  // a dictionary, a slice, keywords, a comprehension
      } else {
        values.push_back(expression());
      }
    }
    if (!plain) return {};
    if (!comma && values.size() == 1) return values.front();
    std::vector<long> numbers;
    std::vector<std::string> texts;
    for (const auto& value : values) {
      if (const auto* number = std::get_if<long>(&value)) numbers.push_back(*number);
      if (const auto* text = std::get_if<std::string>(&value)) texts.push_back(*text);
    }
    if (!values.empty() && numbers.size() == values.size()) return numbers;
    if (!values.empty() && texts.size() == values.size()) return texts;
    return {};
  }

  // Reads .name, (arguments) and [index] behind a value, or behind a name that is looked up at the
  // end.
  PythonValue trailers(PythonValue value, std::string path) {
    while (true) {
      if (take(".")) {
        if (token().kind != Kind::name) return give_up();
        const auto name = tokens_[at_++].text;
        if (token().kind == Kind::sign && token().text == "(" &&
            (name == "startswith" || name == "endswith" || name == "lower")) {
          ++at_;
          const auto argument = list(")");
          value = method(path.empty() ? value : lookup(path), name, argument);
          path.clear();
        } else {
          path = path.empty() ? "?." + name : path + "." + name;
        }
      } else if (take("(")) {
        (void)list(")");
        path = path.empty() ? "?()" : path + "()";
      } else if (take("[")) {
        const auto start = at_;
        const auto index = list("]");
        value = subscript(path.empty() ? value : lookup(path), index, start);
        path.clear();
      } else {
        return path.empty() ? value : lookup(path);
      }
    }
  }

  static PythonValue method(const PythonValue& value, const std::string& name,
                            const PythonValue& argument) {
    const auto* text = std::get_if<std::string>(&value);
    if (!text || *text == imported_name) return {};
    if (name == "lower") return lower(*text);
    std::vector<std::string> wanted;
    if (const auto* one = std::get_if<std::string>(&argument)) wanted = {*one};
    if (const auto* more = std::get_if<std::vector<std::string>>(&argument)) wanted = *more;
    if (wanted.empty()) return {};
    return std::ranges::any_of(wanted, [&](const std::string& one) {
      return name == "startswith" ? text->starts_with(one) : text->ends_with(one);
    });
  }

  // version_info[0], version_info[:2]
  PythonValue subscript(const PythonValue& value, const PythonValue& index, std::size_t start) {
    const auto* numbers = std::get_if<std::vector<long>>(&value);
    if (!numbers) return {};
    if (const auto* list = std::get_if<std::vector<long>>(&index); list && list->size() == 1) {
      const auto at = list->front();
      if (at >= 0 && at < static_cast<long>(numbers->size()))
        return (*numbers)[static_cast<std::size_t>(at)];
    }
    if (tokens_[start].text == ":" && tokens_[start + 1].kind == Kind::number &&
        tokens_[start + 2].text == "]" && tokens_[start + 1].text.size() == 1) {
      const auto count = static_cast<std::size_t>(tokens_[start + 1].text[0] - '0');
      if (count <= numbers->size())
        return std::vector<long>(numbers->begin(),
                                 numbers->begin() + static_cast<std::ptrdiff_t>(count));
    }
    return {};
  }

  PythonValue lookup(const std::string& path) const {
    if (path == "True" || path == "False") return path == "True";
    if (path == "None") return PythonNone();
    if (const auto known = constants_.find(path); known != constants_.end()) return known->second;
    if (path == "TYPE_CHECKING" || path.ends_with(".TYPE_CHECKING")) return false;
    if (path == "__debug__") return true;
    if (path == "__name__") return std::string(imported_name);
    if (path == "sys.platform" || path == "platform" || path == "_sys.platform")
      return std::string("linux");
    if (path == "os.name" || path == "_os.name") return std::string("posix");
    if (path == "os.sep" || path == "os.path.sep") return std::string("/");
    if (path == "platform.system()") return std::string("Linux");
    if (path == "platform.python_implementation()") return std::string("CPython");
    if (path == "sys.implementation.name") return std::string("cpython");
    if (path == "sys.maxsize" && target_.architecture.ends_with("64")) return 0x7fffffffffffffffL;
    if (path == "platform.machine()" && !target_.architecture.empty()) return target_.architecture;
    if (path == "six.PY2" || path == "six.PY3") return path == "six.PY3";
    for (const std::string_view name : {"sys.version_info", "_sys.version_info", "version_info"}) {
      if (!path.starts_with(name)) continue;
      const auto rest = std::string_view(path).substr(name.size());
      if (rest.empty()) return target_.version;
      const auto at = rest == ".major" ? 0U : rest == ".minor" ? 1U : rest == ".micro" ? 2U : 9U;
      if (at < target_.version.size()) return target_.version[at];
    }
    return {};
  }

  std::vector<PythonToken> tokens_;
  const PythonTarget& target_;
  const PythonConstants& constants_;
  std::size_t at_ = 0;
  int depth_ = 0;
  bool failed_ = false;
};

}  // namespace

PythonTarget target_of(const std::string& version, const std::string& architecture) {
  PythonTarget target{.version = {}, .architecture = architecture};
  for (const auto& part : split(version, '.')) {
    long number = 0;
    if (std::from_chars(part.data(), part.data() + part.size(), number).ec != std::errc()) break;
    target.version.push_back(number);
  }
  if (target.version.empty()) target.version = {3};
  if (target.version.size() == 2) target.version.push_back(1);  // later than (3, 11) itself
  return target;
}

PythonValue evaluate(std::string_view expression, const PythonTarget& target,
                     const PythonConstants& constants) {
  constexpr std::size_t longest = 4000;
  if (expression.size() > longest) return {};
  return Evaluator(expression, target, constants).run();
}

std::optional<bool> truth_of(const PythonValue& value) {
  if (std::holds_alternative<Unknown>(value)) return std::nullopt;
  if (std::holds_alternative<PythonNone>(value)) return false;
  if (const auto* truth = std::get_if<bool>(&value)) return *truth;
  if (const auto* number = std::get_if<long>(&value)) return *number != 0;
  if (const auto* text = std::get_if<std::string>(&value)) return !text->empty();
  return true;  // tuples here are never empty
}

}  // namespace wheelscope
