// Reads the statements, each with the blocks that it stands in.
#include "machine/python_source.h"

#include <algorithm>
#include <set>

#include "machine/python_syntax.h"
#include "text/text.h"

namespace wheelscope {
namespace {

// The end of a block's header: the colon outside of brackets and strings; npos: none.
std::size_t header_end(std::string_view text) {
  int open = 0;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '(' || c == '[' || c == '{') {
      ++open;
    } else if (c == ')' || c == ']' || c == '}') {
      --open;
    } else if (c == ':' && open == 0 && (i + 1 >= text.size() || text[i + 1] != '=')) {
      return i;
    }
  }
  return text.npos;
}

constexpr std::string_view headers[] = {"if",     "elif",  "else",  "for", "try",
                                        "except", "with",  "while", "def", "finally",
                                        "class",  "match", "case"};

// The name that a statement assigns to, NAME = ... or NAME: type = ...; empty: none.
std::string_view assigned_name(std::string_view line) {
  const auto name = first_word(line);
  auto rest = trim(line.substr(name.size(), 60));
  if (rest.starts_with(':')) rest = rest.substr(std::min(rest.find('='), rest.size()));
  return rest.starts_with('=') && !rest.starts_with("==") ? name : std::string_view();
}

bool matters_to_imports(std::string_view line) {
  const auto word = first_word(line);
  return word == "import" || word == "from" || word == "raise" || word == "async" ||
         word == "global" || contains(headers, word) ||
         !assigned_name(line.substr(0, line.find('\n'))).empty();
}

class SourceReader {
 public:
  SourceReader(std::string_view text, const PythonTarget& target, PythonReading reading)
      : lines_(text, reading == PythonReading::imports ? matters_to_imports : nullptr),
        target_(target),
        reading_(reading) {}

  PythonSource run() {
    while (const auto line = lines_.next()) {
      blocks_.leave_to(line->indentation);
      const auto text = trim(line->text);
      const bool is_body = reading_ == PythonReading::imports && blocks_.function();
      if (!is_body || first_word(text) == "global") statement(line->indentation, text);
    }
    blocks_.leave_to(0);
    finish();
    return std::move(source_);
  }

 private:
  void statement(std::size_t indentation, std::string_view text) {
    auto word = first_word(text);
    if (word == "async") {
      text = trim(text.substr(5));
      word = first_word(text);
    }
    if (!contains(headers, word) || blocks_.is_deepest()) return simple(text);
    const auto end = header_end(text);
    if (end == text.npos) return simple(text);
    const auto head = trim(text.substr(word.size(), end - word.size()));
    if (word == "if" || word == "with") mentions(head);
    blocks_.enter(indentation, word, head, [&] { return need_of(head); });
    if (const auto body = trim(text.substr(end + 1)); !body.empty())
      statement(indentation + 1, body);
  }

  Need need_of(std::string_view condition) const {
    const auto truth = truth_of(evaluate(condition, target_, constants_));
    return !truth ? Need::depends : *truth ? Need::always : Need::never;
  }

  void raise_here() {
    const auto place = blocks_.here();
    source_.scopes[place.scope].raises = true;
    if (place.scope.empty() && place.attempts.empty() && !blocks_.in_handler() &&
        (place.runs == Need::always || (place.runs == Need::depends && blocks_.asks_modules())))
      source_.refuses = std::max(source_.refuses, place.runs);
    if (const auto* name = blocks_.function()) {
      auto& raises = raising_[*name];
      const bool may_end = returning_.contains(*name);  // before it comes here
      raises = std::max(
          {raises, Certainty::maybe, may_end ? Certainty::no : blocks_.certainty_in_function()});
    }
    blocks_.raise_in_handler(Certainty::yes);
  }

  // A name whose assignments all have one known value is a constant.
  void assign(std::string_view name, PythonValue value) {
    if (!poisoned_.contains(name)) {
      const auto [known, is_new] = constants_.try_emplace(std::string(name), value);
      if (is_new || known->second == value) return;
    }
    poison(name);
  }
  void poison(std::string_view name) {
    poisoned_.emplace(name);
    constants_[std::string(name)] = {};
  }

  // One statement, or several on a line.
  void simple(std::string_view text) {
    for (bool mentioned = false;;) {
      const auto word = first_word(text);
      const auto target = assigned_name(text);
      if (!target.empty() && !blocks_.function() && blocks_.here().runs != Need::never)
        assign(target, evaluate(trim(text.substr(text.find('=') + 1)), target_, constants_));
      if (!target.empty()) note_cffi_name(text);
      if (word == "raise") {
        raise_here();
      } else if (word == "return" && blocks_.function()) {
        returning_.insert(*blocks_.function());
        mentions(text);
      } else if (word == "global") {
        for (const auto& name : split(text.substr(6), ',')) poison(trim(name));
      } else if (word == "import" || word == "from") {
        read_import(text);
      } else if (!mentioned) {
        mentions(text);  // and all that follows: what looks like an end may lie in a string
        mentioned = true;
      }
      const auto semicolon = text.find("; ");
      if (semicolon == text.npos) return;
      text = trim(text.substr(semicolon + 1));
    }
  }

  // NAME = _lib.NAME, for sure: pyOpenSSL takes constants from cryptography's machine code.
  void note_cffi_name(std::string_view text) {
    constexpr std::string_view start = "_lib.";
    const auto place = blocks_.here();
    const auto value = trim(text.substr(text.find('=') + 1));
    if (!place.scope.empty() || place.runs != Need::always || !place.attempts.empty() ||
        !value.starts_with(start))
      return;
    const auto name = first_word(value.substr(start.size()));
    if (name.size() + start.size() == value.size()) source_.cffi_names.emplace_back(name);
  }

  // Notes opened libraries, calls of functions that may open some, and texts that may be names.
  void mentions(std::string_view text) {
    if (reading_ == PythonReading::imports) return;
    const auto place = blocks_.here();
    if (text.find("version.cuda") != text.npos) source_.scopes[place.scope].asks_for_cuda = true;
    if (text.find(".exec_module(") != text.npos) module_openings_.push_back(place);
    if (text.find("load_library(") != text.npos || text.find("CDLL(") != text.npos ||
        text.find("LoadLibrary(") != text.npos)
      openings_.push_back(place);
    source_.describes_operators |=
        place.scope.empty() && place.runs == Need::always && text.starts_with('@') &&
        text.find("::") != text.npos &&
        (text.find("register_fake(") != text.npos || text.find("impl_abstract(") != text.npos);
    read_dynamic_import(text, place);
    for (auto at = text.find('('); at != text.npos; at = text.find('(', at + 1)) {
      auto start = at;
      while (start > 0 && is_name_character(text[start - 1])) --start;
      if (start == at) continue;
      calls_.emplace_back(std::string(text.substr(start, at - start)), place);
      if (const auto raises = raising_.find(calls_.back().first); raises != raising_.end())
        blocks_.raise_in_handler(raises->second);
    }
    for (auto& quoted : quoted_texts(text)) {
      if (!quoted.empty()) source_.scopes[place.scope].texts.push_back(std::move(quoted));
    }
  }

  void read_import(std::string_view text) {
    const auto place = blocks_.here();
    if (place.runs == Need::never) return;
    if (const auto semicolon = text.find(';'); semicolon != text.npos)
      text = trim(text.substr(0, semicolon));
    auto add = [&](ImportStatement statement) {
      if (place.scope.empty()) {
        const bool known = statement.module == "sys" || statement.module.starts_with("typing");
        for (const auto& name : statement.names) {
          if (!known) poison(name);
        }
      }
      add_import(std::move(statement), place);
    };
    if (text.starts_with("import")) {
      for (const auto& part : split(text.substr(6), ',')) add({.module = dotted_name(trim(part))});
      return;
    }
    text = trim(text.substr(4));
    ImportStatement statement;
    while (text.starts_with('.')) {
      ++statement.dots;
      text = trim(text.substr(1));
    }
    const auto import = text.find("import");
    statement.module = text.starts_with("import") ? "" : dotted_name(text);
    const auto after =
        statement.module.empty() ? import : text.find("import", statement.module.size());
    if (after == text.npos) return;
    std::string names(text.substr(after + 6));
    std::erase_if(names, [](char c) { return c == '(' || c == ')'; });
    for (const auto& part : split(names, ',')) {
      if (auto name = std::string(first_word(trim(part))); !name.empty())
        statement.names.push_back(std::move(name));
    }
    add(std::move(statement));
  }

  void add_import(ImportStatement statement, const PythonPlace& place) {
    source_.imports.push_back(std::move(statement));
    places_.push_back(place);
  }

  // import_module("a.b"), import_module(".b", ...), __import__("a"). Of a name that is put
  // together, "a." + b, the package is known.
  void read_dynamic_import(std::string_view text, const PythonPlace& place) {
    for (const std::string_view call : {"import_module(", "__import__("}) {
      const auto at = text.find(call);
      if (at == text.npos || place.runs == Need::never) continue;
      auto name = trim(text.substr(at + call.size()));
      if (name.empty() || (name.front() != '"' && name.front() != '\'')) continue;
      const auto end = std::min(name.find(name.front(), 1), name.size() - 1);
      const auto rest = trim(name.substr(end + 1));
      name = name.substr(1, end - 1);
      if (!rest.starts_with(')') && !rest.starts_with(','))
        name = name.substr(0, name.find_last_of('.') + 1);
      if (name.ends_with('.')) name.remove_suffix(1);
      ImportStatement statement;
      while (name.starts_with('.')) {
        ++statement.dots;
        name.remove_prefix(1);
      }
      statement.module = dotted_name(name);
      if (!statement.module.empty()) add_import(std::move(statement), place);
    }
  }

  // Blanks may stand around the dots.
  static std::string dotted_name(std::string_view text) {
    std::string name;
    for (;; name += '.', text = trim(text.substr(1))) {
      const auto word = first_word(text);
      name += word;
      text = trim(text.substr(word.size()));
      if (!text.starts_with('.')) return name;
    }
  }

  // A function that raises anywhere may do so where its attempts have all failed. A condition asks
  // mostly whether a library is there, so it counts as fulfilled.
  bool survives_library(const PythonPlace& place) const {
    return !raising_.contains(place.scope) && blocks_.survives_library(place);
  }

  // The functions that the file's own statements call, and those that these call.
  std::set<std::string> called_functions() const {
    std::set<std::string> called{""};
    for (bool grown = true; grown;) {
      grown = false;
      for (const auto& [name, place] : calls_) {
        if (place.runs != Need::never && called.contains(place.scope) &&
            source_.scopes.contains(name))
          grown |= called.insert(name).second;
      }
    }
    return called;
  }

  void finish() {
    for (const auto& [name, place] : calls_) source_.scopes.try_emplace(place.scope);
    for (const auto& place : places_) source_.scopes.try_emplace(place.scope);
    const auto called = called_functions();
    std::vector<ImportStatement> needed;
    for (std::size_t i = 0; i < source_.imports.size(); ++i) {
      auto& statement = source_.imports[i];
      statement.need = blocks_.need_at(places_[i]);
      statement.need_if_absent = blocks_.need_of_absent_at(places_[i]);
      if (!places_[i].scope.empty())
        statement.need = called.contains(places_[i].scope) ? std::min(statement.need, Need::depends)
                                                           : Need::never;
      if (statement.need != Need::never)
        needed.push_back(std::move(statement));
      else if (places_[i].scope.empty())
        source_.tried.push_back(std::move(statement));
    }
    source_.imports = std::move(needed);
    for (const auto& place : openings_) {
      auto& scope = source_.scopes[place.scope];
      (survives_library(place) ? scope.opens_optionally : scope.opens) = true;
    }
    for (const auto& place : module_openings_)
      source_.scopes[place.scope].opens_modules |= !survives_library(place);
    for (const auto& [name, place] : calls_)
      source_.scopes[place.scope].calls.push_back({name, survives_library(place)});
  }

  LineReader lines_;
  const PythonTarget& target_;
  PythonReading reading_;
  PythonSource source_;
  PythonBlocks blocks_;
  std::vector<PythonPlace> places_;    // of source_.imports
  std::vector<PythonPlace> openings_;  // of libraries
  std::vector<PythonPlace> module_openings_;
  std::map<std::string, Certainty> raising_;  // functions
  std::set<std::string> returning_;           // functions that have returned by now, maybe
  std::vector<std::pair<std::string, PythonPlace>> calls_;
  PythonConstants constants_;
  std::set<std::string, std::less<>> poisoned_;  // names with several values
};

}  // namespace

PythonSource read_python_source(std::string_view text, const PythonTarget& target,
                                PythonReading reading) {
  if (reading == PythonReading::openings) {
    const bool opens = text.find("CDLL(") != text.npos || text.find("LoadLibrary(") != text.npos;
    reading = opens ? PythonReading::all : PythonReading::imports;
  }
  return SourceReader(text, target, reading).run();
}

std::optional<std::set<std::string>> names_in(std::string_view text) {
  constexpr std::string_view ways[] = {
      "import *", "globals().", "vars()", "sys.modules[__name__]", "_convert_(", "exec("};
  std::set<std::string> names;
  LineReader lines(text);
  while (const auto line = lines.next()) {
    const std::string_view code = line->text;
    if (code.starts_with("globals()[") || code.ends_with("globals()") ||
        (line->indentation == 0 && code.starts_with("def __getattr__(")) ||
        std::ranges::any_of(ways, [&](auto way) { return code.find(way) != code.npos; }))
      return std::nullopt;
    for (std::size_t at = 0; at < code.size();) {
      const char c = code[at];
      const auto word = first_word(code.substr(at));
      if (!word.empty() && (at == 0 || code[at - 1] != '.')) names.emplace(word);
      at += std::max<std::size_t>(word.size(), 1);
      if (c != '"' && c != '\'') continue;
      while (at < code.size() && code[at] != c) at += code[at] == '\\' ? 2 : 1;
      ++at;
    }
  }
  return names;
}

}  // namespace wheelscope
