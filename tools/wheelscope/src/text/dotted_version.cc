// Compares versions by their numbers.
#include "text/dotted_version.h"

#include <cctype>
#include <cstdint>

namespace wheelscope {
namespace {

std::uint64_t take_number(std::string_view& text) {
  std::uint64_t number = 0;
  while (!text.empty() && !std::isdigit(static_cast<unsigned char>(text.front())))
    text.remove_prefix(1);
  while (!text.empty() && std::isdigit(static_cast<unsigned char>(text.front()))) {
    number = number * 10 + static_cast<std::uint64_t>(text.front() - '0');
    text.remove_prefix(1);
  }
  return number;
}

}  // namespace

bool older(std::string_view a, std::string_view b) {
  while (!a.empty() || !b.empty()) {
    const auto left = take_number(a), right = take_number(b);
    if (left != right) return left < right;
  }
  return false;
}

}  // namespace wheelscope
