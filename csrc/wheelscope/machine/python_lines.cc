// Follows brackets, strings and backslashes from line to line.
#include "machine/python_lines.h"

#include <algorithm>

namespace wheelscope {

std::optional<LogicalLine> LineReader::next() {
  LogicalLine line;
  std::size_t open = 0;  // brackets
  bool started = false;
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '\n') {
      ++at_;
      if (started && open == 0) return line;
      if (!started) line.indentation = 0;
      line.text += started ? " " : "";
    } else if (!started && (c == ' ' || c == '\t')) {
      line.indentation += c == '\t' ? 8 - line.indentation % 8 : 1;
      ++at_;
    } else if (c == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (c == '\\' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n') {
      at_ += 2;
      line.text += ' ';
    } else if (c == '"' || c == '\'') {
      started = true;
      read_string(line.text);
    } else {
      started |= c != '\r' && c != '\f';
      if (c == '(' || c == '[' || c == '{') ++open;
      if ((c == ')' || c == ']' || c == '}') && open > 0) --open;
      line.text += c;
      ++at_;
    }
  }
  return started ? std::optional(line) : std::nullopt;
}

// A short string is kept as it is, for conditions; of a long one only the quotes.
void LineReader::read_string(std::string& line) {
  const char quote = text_[at_];
  const auto three = text_.substr(at_, 3);
  const bool is_long = three.size() == 3 && three[1] == quote && three[2] == quote;
  const auto start = at_;
  at_ += is_long ? 3 : 1;
  while (at_ < text_.size()) {
    if (text_[at_] == '\\') {
      at_ += 2;
    } else if (is_long ? text_.substr(at_, 3) == three : text_[at_] == quote) {
      at_ += is_long ? 3 : 1;
      break;
    } else if (!is_long && text_[at_] == '\n') {
      break;  // no string after all
    } else {
      ++at_;
    }
  }
  at_ = std::min(at_, text_.size());
  constexpr std::size_t longest_kept = 60;
  if (is_long || at_ - start > longest_kept)
    line += "''";
  else
    line += text_.substr(start, at_ - start);
}

}  // namespace wheelscope
