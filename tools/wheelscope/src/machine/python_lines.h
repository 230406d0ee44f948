// The logical lines of a Python file: statements, whatever lines, brackets and strings they span.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace wheelscope {

// A statement with its indentation; comments and the contents of long strings are left out.
struct LogicalLine {
  std::size_t indentation = 0;
  std::string text;
};

// Whether a statement that starts so is of interest. Of others there is no text, except what
// follows a semicolon.
using KeepsLine = bool (*)(std::string_view start);

// Names of Python: whether a character goes on one, and the one that a text starts with.
bool is_name_character(char c);
std::string_view first_word(std::string_view text);

class LineReader {
 public:
  explicit LineReader(std::string_view text, KeepsLine keeps = nullptr)
      : text_(text), keeps_(keeps) {}

  std::optional<LogicalLine> next();

 private:
  std::string_view read_string();
  void skip_long_string();

  std::string_view text_;
  KeepsLine keeps_;  // null: all
  std::size_t at_ = 0;
};

}  // namespace wheelscope
