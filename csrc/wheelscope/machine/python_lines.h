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

class LineReader {
 public:
  explicit LineReader(std::string_view text) : text_(text) {}

  std::optional<LogicalLine> next();

 private:
  void read_string(std::string& line);

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace wheelscope
