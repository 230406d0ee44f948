// The facts as text for people: aligned, coloured where the terminal takes it.
#pragma once

#include "cover.h"
#include "diff.h"
#include "facts.h"
#include "link.h"

namespace wheelscope {

struct Style {
  bool colour = false;
  std::string bold(std::string_view text) const { return paint("1", text); }
  std::string dim(std::string_view text) const { return paint("2", text); }
  std::string good(std::string_view text) const { return paint("32", text); }
  std::string warn(std::string_view text) const { return paint("33", text); }
  std::string bad(std::string_view text) const { return paint("31", text); }

 private:
  std::string paint(const char* code, std::string_view text) const;
};

std::string show_text(const Item& item, const Style& style);
std::string findings_text(const std::vector<Finding>& findings, const Style& style);
std::string cover_text(const std::vector<CellVerdict>& verdicts, const Style& style);
std::string link_text(const LinkReport& report, const Style& style);
std::string diff_text(const std::vector<Change>& changes, const Style& style);

// 484 MB, 1.2 kB.
std::string human_size(std::uint64_t bytes);

}  // namespace wheelscope
