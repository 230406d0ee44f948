// Formats text: colours, and lines with a label.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "text/text.h"

namespace wheelscope {

struct Style {
  bool colour = false;
  std::string bold(std::string_view text) const { return paint("1", text); }
  std::string dim(std::string_view text) const { return paint("2", text); }
  std::string good(std::string_view text) const { return paint("32", text); }
  std::string warn(std::string_view text) const { return paint("33", text); }
  std::string bad(std::string_view text) const { return paint("31", text); }

 private:
  std::string paint(const char* code, std::string_view text) const {
    if (!colour) return std::string(text);
    return "\x1b[" + std::string(code) + "m" + std::string(text) + "\x1b[0m";
  }
};

// Lines "  label   value"; a repeated label is left blank.
class Lines {
 public:
  explicit Lines(const Style& style) : style_(style) {}
  void add(const std::string& label, const std::string& value) {
    constexpr std::size_t label_width = 12;
    text += "  " + style_.dim(padded(label == last_ ? "" : label, label_width)) + value + "\n";
    last_ = label;
  }
  // Adds a list, one element per line; if not all are shown, a line says how many are left.
  void add_list(const std::string& label, const std::vector<std::string>& values,
                std::size_t most = 6) {
    for (std::size_t i = 0; i < std::min(values.size(), most); ++i) add(label, values[i]);
    if (values.size() > most) add(label, "and " + std::to_string(values.size() - most) + " more");
  }
  std::string text;

 private:
  const Style& style_;
  std::string last_;
};

}  // namespace wheelscope
