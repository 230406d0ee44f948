// Leaves out what serves another system than the one that a message is of: brew for a message of
// Linux, apt for one of Windows.
#include <algorithm>

#include "answers/explain.h"
#include "text/text.h"

namespace wheelscope {
namespace {

struct Beginning {
  std::string_view words;
  std::string_view systems;  // that text beginning so is for
};

// Labels count up to the next one in a line, commands for themselves alone.
constexpr Beginning labels[] = {{"Linux and macOS:", "linux musl macos"},
                                {"Linux and Windows:", "linux musl windows"},
                                {"Windows:", "windows"},
                                {"on Linux and Windows:", "linux musl windows"},
                                {"on Windows and macOS", "windows macos"},
                                {"on Windows", "windows"},
                                {"macOS:", "macos"},
                                {"on macOS", "macos"},
                                {"macOS with ", "macos"},
                                {"Homebrew:", "macos"},
                                {"with Homebrew", "macos"},
                                {"Linux:", "linux musl"},
                                {"on Linux", "linux musl"},
                                {"Linux with ", "linux musl"},
                                {"on CentOS and RHEL", "linux"},
                                {"Debian and Ubuntu", "linux"},
                                {"on Debian and Ubuntu", "linux"}};
constexpr Beginning commands[] = {{"apt install ", "linux"},      {"sudo apt install ", "linux"},
                                  {"dnf install ", "linux"},      {"apk add ", "musl"},
                                  {"brew install ", "macos"},     {"xcode-select ", "macos"},
                                  {"sudo xcode-select ", "macos"}};

const Beginning* beginning_of(std::string_view text, const auto& known) {
  for (const std::string_view word : {"or ", "then "}) {
    if (text.starts_with(word)) text.remove_prefix(word.size());
  }
  const auto* found = std::ranges::find_if(
      known, [&](const Beginning& one) { return text.starts_with(one.words); });
  return found == std::end(known) ? nullptr : found;
}

// Where a command begins: at once, or after words such as "none is installed: ".
std::size_t start_of_command(std::string_view segment) {
  if (beginning_of(segment, commands)) return 0;
  const auto colon = segment.find(": ");
  if (colon == segment.npos) return segment.npos;
  return beginning_of(segment.substr(colon + 2), commands) ? colon + 2 : segment.npos;
}

std::vector<std::string_view> split_at(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> parts;
  for (auto at = text.find(separator); at != text.npos; at = text.find(separator)) {
    parts.push_back(text.substr(0, at));
    text.remove_prefix(at + separator.size());
  }
  parts.push_back(text);
  return parts;
}

}  // namespace

std::string for_system(std::string_view line, std::string_view system) {
  const auto serves = [&](const Beginning& one) { return one.systems.contains(system); };
  const Beginning* label = nullptr;
  std::vector<std::string> kept;
  for (const auto segment : split_at(line, "; ")) {
    if (const auto* own = beginning_of(segment, labels)) label = own;
    if (label && !serves(*label)) continue;
    const auto start = start_of_command(segment);
    if (start == segment.npos) {
      kept.emplace_back(segment);
      continue;
    }
    std::vector<std::string> pieces;
    for (const auto piece : split_at(segment.substr(start), ", ")) {
      const auto* command = beginning_of(piece, commands);
      if (!command || serves(*command)) pieces.emplace_back(piece);
    }
    // Alpine's packages are called like others, where no name of its own is told.
    const bool is_command = !pieces.empty() && beginning_of(pieces.front(), commands);
    if (is_command)
      kept.push_back(std::string(segment.substr(0, start)) + joined(pieces));
    else if (system == "musl" && !segment.contains("apk add"))
      kept.emplace_back(segment);
  }
  return joined(kept, "; ");
}

}  // namespace wheelscope
