// Follows brackets, strings and backslashes from line to line.
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

}  // namespace wheelscope
