// Follows brackets, strings and backslashes from line to line, and keeps a stack of blocks; what a
// `try` survives is settled when its handlers end.
#include "machine/python_syntax.h"

#include <algorithm>
#include <array>

#include "text/text.h"

namespace wheelscope {
namespace {

// Characters that a line does more with than to keep them.
constexpr auto special = [] {
  std::array<bool, 256> table{};
  for (const unsigned char c : std::string_view("\n#\\\"';()[]{}")) table[c] = true;
  return table;
}();

bool is_special(char c) {
  return special[static_cast<unsigned char>(c)];
}

// Tells whether a handler catches an error, by the last parts of the names that it lists.
Certainty catches(std::string_view handler, std::string_view wanted) {
  constexpr std::string_view others[] = {
      "AttributeError",    "NameError",           "KeyError",        "ValueError",
      "TypeError",         "IndexError",          "LookupError",     "SyntaxError",
      "RuntimeError",      "ModuleNotFoundError", "AssertionError",  "StopIteration",
      "UnicodeError",      "DeprecationWarning",  "SystemExit",      "FileNotFoundError",
      "KeyboardInterrupt", "NotImplementedError", "ArithmeticError", "ImportError",
      "OSError",           "EnvironmentError",    "IOError"};
  if (const auto as = handler.find(" as "); as != handler.npos) handler = handler.substr(0, as);
  if (trim(handler).empty()) return Certainty::yes;
  auto result = Certainty::no;
  while (!handler.empty()) {
    const auto name = first_word(handler);
    handler.remove_prefix(std::max<std::size_t>(name.size(), 1));
    if (name.empty() || handler.starts_with('.')) continue;
    const bool is_os = name == "OSError" || name == "EnvironmentError" || name == "IOError";
    if (name == "Exception" || name == "BaseException" || name == wanted ||
        (is_os && wanted == "OSError"))
      return Certainty::yes;
    if (!contains(others, name)) result = Certainty::maybe;
  }
  return result;
}

void settle(Certainty caught, Certainty raises, Certainty& survives, bool& settled) {
  if (settled || caught == Certainty::no) return;
  const auto goes_on = raises == Certainty::no    ? Certainty::yes
                       : raises == Certainty::yes ? Certainty::no
                                                  : Certainty::maybe;
  settled = caught == Certainty::yes;
  survives = settled && survives == Certainty::no ? goes_on
             : goes_on == survives                ? survives
                                                  : Certainty::maybe;
}

}  // namespace

std::optional<LogicalLine> LineReader::next() {
  LogicalLine line;
  std::size_t open = 0;  // brackets
  bool started = false, kept = true;
  auto keep = [&](std::string_view text) {
    if (kept) line.text += text;
  };
  while (at_ < text_.size()) {
    const char c = text_[at_];
    const bool starts = !started && c != '\n' && c != ' ' && c != '\t' && c != '#' && c != '\\';
    if (starts && keeps_) kept = keeps_(text_.substr(at_));
    if (c == '\n') {
      ++at_;
      if (started && open == 0) return line;
      if (!started) line.indentation = 0;
      keep(started ? " " : "");
    } else if (!started && (c == ' ' || c == '\t')) {
      line.indentation += c == '\t' ? 8 - line.indentation % 8 : 1;
      ++at_;
    } else if (c == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (c == '\\' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n') {
      at_ += 2;
      keep(" ");
    } else if (c == '"' || c == '\'') {
      started = true;
      keep(read_string());
    } else {
      started |= c != '\r' && c != '\f';
      kept |= c == ';';
      if (c == '(' || c == '[' || c == '{') ++open;
      if ((c == ')' || c == ']' || c == '}') && open > 0) --open;
      const auto start = at_++;
      while (started && at_ < text_.size() && !is_special(text_[at_])) ++at_;
      keep(text_.substr(start, at_ - start));
    }
  }
  return started ? std::optional(line) : std::nullopt;
}

// A short string as it is, for conditions; of a long one only the quotes.
std::string_view LineReader::read_string() {
  const char quote = text_[at_];
  const auto start = at_;
  const auto three = text_.substr(at_, 3);
  if (three.size() == 3 && three[1] == quote && three[2] == quote) {
    skip_long_string();
    return "''";
  }
  for (++at_; at_ < text_.size(); ++at_) {
    if (text_[at_] == '\\') {
      ++at_;
    } else if (text_[at_] == quote) {
      ++at_;
      break;
    } else if (text_[at_] == '\n') {
      break;  // no string after all
    }
  }
  at_ = std::min(at_, text_.size());
  constexpr std::size_t longest_kept = 60;
  return at_ - start > longest_kept ? "''" : text_.substr(start, at_ - start);
}

// Skips to the next three quotes, of which the first has no backslash before it, or an even number.
void LineReader::skip_long_string() {
  const auto three = text_.substr(at_, 3);
  const auto first = at_ + 3;
  for (at_ = text_.find(three, first); at_ != text_.npos; at_ = text_.find(three, at_ + 1)) {
    std::size_t backslashes = 0;
    while (at_ - backslashes > first && text_[at_ - backslashes - 1] == '\\') ++backslashes;
    if (backslashes % 2 == 0) break;
  }
  at_ = at_ == text_.npos ? text_.size() : at_ + 3;
}

bool is_name_character(char c) {
  return starts_name(c) || is_digit(c);
}

std::string_view first_word(std::string_view text) {
  std::size_t end = 0;
  while (end < text.size() && is_name_character(text[end])) ++end;
  return text.substr(0, end);
}

std::vector<std::string> quoted_texts(std::string_view text) {
  std::vector<std::string> texts;
  for (auto at = text.find_first_of("'\""); at != text.npos;) {
    const auto end = text.find(text[at], at + 1);
    if (end == text.npos) break;
    texts.emplace_back(text.substr(at + 1, end - at - 1));
    at = text.find_first_of("'\"", end + 1);
  }
  return texts;
}

void PythonBlocks::leave_to(std::size_t indentation) {
  while (!blocks_.empty() && blocks_.back().indentation >= indentation) leave();
}

void PythonBlocks::leave() {
  if (blocks_.back().kind == Block::Kind::handler) {
    const auto& handler = handlers_.back();
    auto& attempt = attempts_[handler.attempt];
    settle(handler.import, handler.raises, attempt.survives_import, attempt.import_settled);
    settle(handler.absence, handler.raises, attempt.survives_absence, attempt.absence_settled);
    settle(handler.library, handler.raises, attempt.survives_library, attempt.library_settled);
    handlers_.pop_back();
  }
  last_left_ = blocks_.back();
  blocks_.pop_back();
}

bool PythonBlocks::is_deepest() const {
  constexpr std::size_t deepest = 100;  // as for Python itself
  return blocks_.size() == deepest;
}

PythonPlace PythonBlocks::here() const {
  const auto* inside = function();
  PythonPlace place{.scope = inside ? *inside : ""};
  for (const auto& block : blocks_) {
    if (block.kind == Block::Kind::attempt) place.attempts.push_back(block.id);
    place.runs = std::min(place.runs, block.runs);
  }
  return place;
}

const std::string* PythonBlocks::function() const {
  const auto found = std::ranges::find(blocks_, Block::Kind::function, &Block::kind);
  return found == blocks_.end() ? nullptr : &found->function;
}

bool PythonBlocks::asks_modules() const {
  return std::ranges::any_of(blocks_, &Block::asks_modules);
}

// A branch runs if its condition holds and no earlier branch runs.
void PythonBlocks::enter_branch(std::string_view condition, Need holds, Need before, Block& block) {
  const auto fails = holds == Need::always  ? Need::never
                     : holds == Need::never ? Need::always
                                            : Need::depends;
  block.branch = true;
  block.asks_modules = condition.find("sys.modules") != condition.npos;
  block.runs = std::min(before, holds);
  block.others = std::min(before, fails);
}

void PythonBlocks::begin_attempt(Block& block) {
  block.kind = Block::Kind::attempt;
  block.id = attempts_.size();
  attempts_.emplace_back();
}

void PythonBlocks::enter(std::size_t indentation, std::string_view word, std::string_view head,
                         const std::function<Need()>& need_of_condition) {
  Block block{.indentation = indentation};
  if (word == "def") {
    block.kind = Block::Kind::function;
    block.function = first_word(head);
  } else if (word == "if") {
    enter_branch(head, need_of_condition(), Need::always, block);
  } else if (word == "elif") {
    enter_branch(head, need_of_condition(), last_left_.others, block);
  } else if (word == "else") {
    if (last_left_.branch)
      enter_branch("", Need::always, last_left_.others, block);  // others always run
    else if (last_left_.kind == Block::Kind::handler)
      block.runs = Need::depends;  // on what was tried
    else
      block.runs = last_left_.runs;  // of a loop: it is skipped by `break`
  } else if (word == "case" || word == "for" || word == "while") {
    block.runs = Need::depends;
  } else if (word == "with") {
    begin_attempt(block);
    auto& attempt = attempts_.back();
    if (const auto suppress = head.find("suppress("); suppress != head.npos) {
      attempt.survives_import = catches(head.substr(suppress + 9), "ImportError");
      attempt.survives_absence = std::max(
          attempt.survives_import, catches(head.substr(suppress + 9), "ModuleNotFoundError"));
      attempt.survives_library = catches(head.substr(suppress + 9), "OSError");
    } else if (head.find("catch_warnings(") == head.npos) {
      attempt.survives_import = attempt.survives_absence = Certainty::maybe;  // it may be made to
    }
  } else if (word == "try") {
    begin_attempt(block);
  } else if (word == "except" && !attempts_.empty()) {
    block.kind = Block::Kind::handler;
    block.runs = Need::depends;
    block.id = last_left_.id;
    handlers_.push_back(
        {.attempt = block.id,
         .import = catches(head, "ImportError"),
         .library = catches(head, "OSError"),
         .absence = std::max(catches(head, "ImportError"), catches(head, "ModuleNotFoundError"))});
  }
  blocks_.push_back(block);
}

// Tells whether a statement here runs whenever the innermost block of a kind does.
Certainty PythonBlocks::certainty_within(Block::Kind kind) const {
  auto certainty = Certainty::yes;
  for (auto block = blocks_.rbegin(); block != blocks_.rend(); ++block) {
    if (block->kind == kind) return certainty;
    if (block->kind == Block::Kind::function || block->runs == Need::never) break;
    if (block->runs == Need::depends || block->kind == Block::Kind::attempt)
      certainty = Certainty::maybe;
  }
  return Certainty::no;
}

Certainty PythonBlocks::certainty_in_function() const {
  const bool is_nested = std::ranges::count(blocks_, Block::Kind::function, &Block::kind) > 1;
  return is_nested ? Certainty::maybe : certainty_within(Block::Kind::function);
}

void PythonBlocks::raise_in_handler(Certainty certainty) {
  if (handlers_.empty()) return;
  auto& raises = handlers_.back().raises;
  raises = std::max(raises, std::min(certainty, certainty_within(Block::Kind::handler)));
}

bool PythonBlocks::survives_library(const PythonPlace& place) const {
  return std::ranges::any_of(place.attempts, [&](std::size_t id) {
    return attempts_[id].survives_library == Certainty::yes;
  });
}

Need PythonBlocks::need_at(const PythonPlace& place) const {
  return need_at(place, &Attempt::survives_import);
}

Need PythonBlocks::need_of_absent_at(const PythonPlace& place) const {
  return need_at(place, &Attempt::survives_absence);
}

Need PythonBlocks::need_at(const PythonPlace& place, Certainty Attempt::* what) const {
  auto need = place.runs;
  for (const auto id : place.attempts) {
    const auto survives = attempts_[id].*what;
    if (survives == Certainty::yes) return Need::never;
    if (survives == Certainty::maybe) need = std::min(need, Need::depends);
  }
  return need;
}

}  // namespace wheelscope
