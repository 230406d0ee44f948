// Reads from a whole text what its messages do not say themselves: which Python and pip printed
// them, and on what kind of system.
#include <set>

#include "answers/explain.h"
#include "text/text.h"

namespace wheelscope {
namespace {

// Returns the digits and dots after each place where a word stands.
std::set<std::string> numbers_after(std::string_view text, std::string_view word) {
  std::set<std::string> found;
  for (auto at = find_in(text, word); at != text.npos; at = find_in(text, word, at + 1)) {
    auto number = text.substr(at + word.size());
    number = number.substr(0, number.find_first_not_of("0123456789."));
    if (!number.empty()) found.emplace(number);
  }
  return found;
}

// The minor version of Python if the text names one alone: by the folder of its packages, as pip
// and uv say it, or by its folder on Windows.
std::string python_of(std::string_view text) {
  std::set<std::string> minors;
  for (const auto* word : {"/python3.", "(python 3.", " cpython 3."}) {
    for (const auto& number : numbers_after(text, word))
      minors.insert("3." + number.substr(0, number.find('.')));
  }
  for (const auto& number : numbers_after(text, "\\python3")) {
    if (number.size() < 3 && !number.contains('.')) minors.insert("3." + number);
  }
  return minors.size() == 1 ? *minors.begin() : "";
}

std::string pip_of(std::string_view text) {
  for (const auto* word : {"pip version: pip ", "using pip version ", "pip "}) {
    for (const auto& number : numbers_after(text, word)) {
      const auto said = std::string(word) + number;
      const auto after = text.substr(text.find(said) + said.size());
      if (word != std::string_view("pip ") || after.starts_with(" from ")) return number;
    }
  }
  return {};
}

bool has(std::string_view text, std::initializer_list<std::string_view> words) {
  for (const auto word : words) {
    if (find_in(text, word) != text.npos) return true;
  }
  return false;
}

}  // namespace

std::map<std::string, std::string> facts_of_text(std::string_view lowered) {
  return {{"its_python", python_of(lowered)},
          {"its_pip", pip_of(lowered)},
          {"sudo", has(lowered, {"sudo pip", "sudo python", "sudo -h pip"}) ? "sudo" : ""},
          {"musl", has(lowered, {"musl", "alpine", "apk add"}) ? "musl" : ""}};
}

}  // namespace wheelscope
