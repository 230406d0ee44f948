// Keeps the blocks that each line stands in.
#include "machine/python_source.h"

#include <algorithm>
#include <set>

#include "machine/python_lines.h"
#include "text/text.h"

namespace wheelscope {
namespace {

bool is_name_character(char c) {
  return c == '_' || is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c < 0;
}

std::string_view first_word(std::string_view text) {
  std::size_t end = 0;
  while (end < text.size() && is_name_character(text[end])) ++end;
  return text.substr(0, end);
}

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

// Whether the branch of a condition runs here.
enum class Runs { never, maybe, always };

Runs runs(std::string_view condition) {
  bool negated = false;
  if (condition.starts_with("not ")) {
    negated = true;
    condition = trim(condition.substr(4));
  }
  auto has = [&](std::string_view what) { return condition.find(what) != condition.npos; };
  const bool never = condition == "TYPE_CHECKING" || condition.ends_with(".TYPE_CHECKING") ||
                     condition == "False" || condition == "0" ||
                     (!has("!=") && (has("__name__ ==") || has("\"win") || has("'win") ||
                                     has("'nt'") || has("\"nt\"") || has("darwin") ||
                                     has("\"Windows") || has("'Windows") || has("emscripten")));
  if (never) return negated ? Runs::always : Runs::never;
  // Either branch may be this Python's, and what is imported there is much the same.
  return has("version_info") || condition == "True" ? Runs::always : Runs::maybe;
}

bool catches(std::string_view handler, std::initializer_list<std::string_view> types) {
  if (trim(handler).empty() || handler.find("Exception") != handler.npos) return true;
  return std::ranges::any_of(types, [&](auto type) { return handler.find(type) != handler.npos; });
}

constexpr std::string_view headers[] = {"if",     "elif",  "else",  "for", "try",
                                        "except", "with",  "while", "def", "finally",
                                        "class",  "match", "case"};

bool matters_to_imports(std::string_view line) {
  const auto word = first_word(line);
  return word == "import" || word == "from" || word == "raise" || word == "async" ||
         std::ranges::find(headers, word) != std::end(headers);
}

class SourceReader {
 public:
  SourceReader(std::string_view text, PythonReading reading)
      : lines_(text, reading == PythonReading::imports ? matters_to_imports : nullptr),
        reading_(reading) {}

  PythonSource run() {
    while (const auto line = lines_.next()) {
      while (!blocks_.empty() && blocks_.back().indentation >= line->indentation) leave();
      if (reading_ == PythonReading::imports && function()) continue;
      statement(line->indentation, trim(line->text));
    }
    while (!blocks_.empty()) leave();
    finish();
    return std::move(source_);
  }

 private:
  struct Block {
    std::size_t indentation = 0;
    enum class Kind { plain, function, attempt, handler } kind = Kind::plain;
    Runs runs = Runs::always;
    bool branch = false;   // of an `if`
    std::size_t id = 0;    // of an attempt, or the one of a handler
    std::string function;  // its name
  };
  // A `try`, with what its handlers do.
  struct Attempt {
    bool survives_import = false, survives_library = false;
  };
  struct Handler {
    std::size_t attempt = 0;
    bool import = false, library = false, raises = false;
  };
  // Where a statement stands; what its attempts survive is known only at the end.
  struct Place {
    std::string scope;
    std::vector<std::size_t> attempts;
    bool conditional = false;
  };

  void leave() {
    if (blocks_.back().kind == Block::Kind::handler) {
      const auto& handler = handlers_.back();
      auto& attempt = attempts_[handler.attempt];
      attempt.survives_import |= handler.import && !handler.raises;
      attempt.survives_library |= handler.library && !handler.raises;
      handlers_.pop_back();
    }
    last_left_ = blocks_.back();
    blocks_.pop_back();
  }

  Place here() const {
    const auto* inside = function();
    Place place{.scope = inside ? inside->function : ""};
    for (const auto& block : blocks_) {
      if (block.kind == Block::Kind::attempt) place.attempts.push_back(block.id);
      place.conditional |= block.runs != Runs::always;
    }
    return place;
  }

  const Block* function() const {
    const auto found = std::ranges::find(blocks_, Block::Kind::function, &Block::kind);
    return found == blocks_.end() ? nullptr : &*found;
  }

  void statement(std::size_t indentation, std::string_view text) {
    auto word = first_word(text);
    if (word == "async") {
      text = trim(text.substr(5));
      word = first_word(text);
    }
    constexpr std::size_t deepest = 100;  // as for Python itself
    if (std::ranges::find(headers, word) == std::end(headers) || blocks_.size() == deepest)
      return simple(text);
    const auto end = header_end(text);
    if (end == text.npos) return simple(text);
    const auto head = trim(text.substr(word.size(), end - word.size()));
    enter(indentation, word, head);
    if (const auto body = trim(text.substr(end + 1)); !body.empty())
      statement(indentation + 1, body);
  }

  void enter(std::size_t indentation, std::string_view word, std::string_view head) {
    Block block{.indentation = indentation};
    if (word == "def") {
      block.kind = Block::Kind::function;
      block.function = first_word(head);
    } else if (word == "if") {
      block.runs = runs(head);
      block.branch = true;
      mentions(head);
    } else if (word == "elif" || word == "case") {
      block.runs = Runs::maybe;
      block.branch = true;
    } else if (word == "else") {
      // Of an `if`; that of a loop or a `try` runs.
      block.runs = last_left_.branch && last_left_.runs == Runs::maybe ? Runs::maybe : Runs::always;
    } else if (word == "with") {
      block.runs = head.find("suppress(") != head.npos ? Runs::maybe : Runs::always;
      mentions(head);
    } else if (word == "try") {
      block.kind = Block::Kind::attempt;
      block.id = attempts_.size();
      attempts_.emplace_back();
    } else if (word == "except" && !attempts_.empty()) {
      block.kind = Block::Kind::handler;
      block.runs = Runs::maybe;
      block.id = last_left_.id;
      const bool import = catches(head, {"ImportError"});
      handlers_.push_back({.attempt = block.id,
                           .import = import,
                           .library = catches(head, {"OSError", "EnvironmentError", "IOError"})});
    }
    blocks_.push_back(block);
  }

  // One statement, or several on a line.
  void simple(std::string_view text) {
    for (bool mentioned = false;;) {
      const auto word = first_word(text);
      if (word == "raise") {
        if (!handlers_.empty()) handlers_.back().raises = true;
        if (const auto* inside = function()) raising_.insert(inside->function);
      } else if (word == "import" || word == "from") {
        if (!function()) read_import(text);
      } else if (!mentioned) {
        mentions(text);  // and all that follows: what looks like an end may lie in a string
        mentioned = true;
      }
      const auto semicolon = text.find("; ");
      if (semicolon == text.npos) return;
      text = trim(text.substr(semicolon + 1));
    }
  }

  // Libraries that are opened, calls of functions that may do so, and texts that may be names.
  void mentions(std::string_view text) {
    if (reading_ == PythonReading::imports) return;
    const auto place = here();
    if (text.find(".exec_module(") != text.npos) module_openings_.push_back(place);
    if (text.find("load_library(") != text.npos || text.find("CDLL(") != text.npos ||
        text.find("LoadLibrary(") != text.npos)
      openings_.push_back(place);
    source_.describes_operators |=
        place.scope.empty() && !place.conditional && text.starts_with('@') &&
        text.find("::") != text.npos &&
        (text.find("register_fake(") != text.npos || text.find("impl_abstract(") != text.npos);
    for (auto at = text.find('('); at != text.npos; at = text.find('(', at + 1)) {
      auto start = at;
      while (start > 0 && is_name_character(text[start - 1])) --start;
      if (start < at) calls_.emplace_back(std::string(text.substr(start, at - start)), place);
    }
    for (auto at = text.find_first_of("'\""); at != text.npos;) {
      const auto end = text.find(text[at], at + 1);
      if (end == text.npos) break;
      if (end > at + 1)
        source_.scopes[place.scope].texts.emplace_back(text.substr(at + 1, end - at - 1));
      at = text.find_first_of("'\"", end + 1);
    }
  }

  void read_import(std::string_view text) {
    const auto place = here();
    if (std::ranges::any_of(blocks_, [](const Block& one) { return one.runs == Runs::never; }))
      return;
    if (const auto semicolon = text.find(';'); semicolon != text.npos)
      text = trim(text.substr(0, semicolon));
    auto add = [&](ImportStatement statement) {
      statement.optional = place.conditional;
      source_.imports.push_back(std::move(statement));
      places_.push_back(place);
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

  static std::string dotted_name(std::string_view text) {
    std::size_t end = 0;
    while (end < text.size() && (is_name_character(text[end]) || text[end] == '.')) ++end;
    return std::string(text.substr(0, end));
  }

  // A function that raises anywhere may do so where its attempts have all failed. A condition asks
  // mostly whether a library is there, so it counts as fulfilled.
  bool survives_library(const Place& place) const {
    return !raising_.contains(place.scope) &&
           std::ranges::any_of(place.attempts,
                               [&](std::size_t id) { return attempts_[id].survives_library; });
  }

  void finish() {
    for (std::size_t i = 0; i < source_.imports.size(); ++i) {
      source_.imports[i].optional |= std::ranges::any_of(
          places_[i].attempts, [&](std::size_t id) { return attempts_[id].survives_import; });
    }
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
  PythonReading reading_;
  PythonSource source_;
  std::vector<Block> blocks_;
  Block last_left_;
  std::vector<Attempt> attempts_;
  std::vector<Handler> handlers_;
  std::vector<Place> places_;    // of source_.imports
  std::vector<Place> openings_;  // of libraries
  std::vector<Place> module_openings_;
  std::set<std::string> raising_;  // functions
  std::vector<std::pair<std::string, Place>> calls_;
};

}  // namespace

PythonSource read_python_source(std::string_view text, PythonReading reading) {
  return SourceReader(text, reading).run();
}

}  // namespace wheelscope
