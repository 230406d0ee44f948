// Reads from a whole text what its messages do not say themselves: which Python and pip printed
// them, and on what kind of system.
#include <filesystem>
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
// and uv say it, by its folder on Windows, or in the name of a module.
std::string python_of(std::string_view text) {
  std::set<std::string> minors;
  for (const auto* word : {"/python3.", "(python 3.", " cpython 3."}) {
    for (const auto& number : numbers_after(text, word))
      minors.insert("3." + number.substr(0, number.find('.')));
  }
  for (const auto* word : {"\\python3", "cpython-3"}) {
    for (const auto& number : numbers_after(text, word)) {
      if (number.size() < 3 && !number.contains('.')) minors.insert("3." + number);
    }
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

// Returns the folders of users and of packages in a text: /home/me, /opt/venv/.../site-packages.
std::set<std::string> folders_of(std::string_view text) {
  std::set<std::string> folders;
  for (const auto* mark : {"/home/", "/Users/", "/root/", "site-packages", "dist-packages"}) {
    for (auto at = find_in(text, mark); at != text.npos; at = find_in(text, mark, at + 1)) {
      constexpr std::string_view before = " \t\n'\"`([=,;|";
      const auto begin = text.find_last_of(before, at) + 1;
      auto end = at + std::string_view(mark).size();
      if (*mark == '/') end = text.find_first_of("/'\" \t\n:,)", end);
      auto folder = text.substr(begin, end - begin);
      // "ImportError:/home/me/a.so"
      if (const auto colon = folder.rfind(":/"); colon != folder.npos)
        folder = folder.substr(colon + 1);
      if (folder.starts_with('/')) folders.emplace(folder);
    }
  }
  return folders;
}

}  // namespace

bool is_of_windows(std::string_view text) {
  for (const auto* sign :
       {"c1083", "c1189", ":/program files", ".dll", "link : fatal", "lnk1", "lnk2", "winerror",
        ".exe", "is not recognized as an internal or external command", "name of a cmdlet"}) {
    if (text.contains(sign)) return true;
  }
  for (auto colon = text.find(":\\"); colon != text.npos; colon = text.find(":\\", colon + 1)) {
    if (colon > 0 && text[colon - 1] >= 'a' && text[colon - 1] <= 'z' &&
        (colon == 1 || text[colon - 2] < 'a' || text[colon - 2] > 'z'))
      return true;
  }
  return false;
}

bool is_of_another_machine(std::string_view text, const MachineFacts& machine) {
  const auto lowered = lower(text);
  if (has(lowered, {":\\", ".dll", ".pyd", "winerror", "win_amd64", "lnk1", "lnk2", ".dylib",
                    "dyld", "darwin", "macosx", "homebrew", "jetson", "l4t", "raspberry"}))
    return true;
  for (const auto* other : {"x86_64", "aarch64"}) {
    if (machine.architecture != other && has(lowered, {std::string(other) + "-linux"})) return true;
  }
  const auto folders = folders_of(text);
  if (std::ranges::any_of(folders, [](const std::string& folder) {
        std::error_code error;
        return std::filesystem::exists(folder, error);
      }))
    return false;
  const auto python = python_of(lowered);
  return !folders.empty() ||
         (!python.empty() && !(machine.python && machine.python->minor() == python));
}

std::map<std::string, std::string> facts_of_text(std::string_view lowered) {
  const bool home = has(lowered, {"/home/", "/root/", "/mnt/c/", "linux-gnu"});
  const bool windows = !home && is_of_windows(lowered);
  // Weaker signs: packages of Windows try libraries by their names of Linux, too.
  const bool linux =
      home || (!windows &&
               has(lowered, {".so.", "/usr/bin/ld", "linux-x86_64", "linux-aarch64", "manylinux",
                             "/usr/lib64/", "/opt/rocm", "/opt/conda", "/usr/lib/gcc/"}));
  const bool macos = !linux && !windows &&
                     has(lowered, {"/users/", "~/library/", ".dylib", "-darwin.so", "/opt/homebrew",
                                   "macosx-1", "osx-arm64", "osx-64", "dyld["});
  return {
      {"windows", windows ? "windows" : ""},
      {"macos", macos ? "macos" : ""},
      {"linux", linux ? "linux" : ""},
      {"its_python", python_of(lowered)},
      {"its_pip", pip_of(lowered)},
      {"sudo", has(lowered, {"sudo pip", "sudo python", "sudo -h pip"}) ? "sudo" : ""},
      // Not the musllinux of a wheel's name, which uv and pip print anywhere.
      {"musl", has(lowered, {"alpine", "apk add", "ld-musl", "libc.musl", "linux-musl", " musl "})
                   ? "musl"
                   : ""}};
}

}  // namespace wheelscope
