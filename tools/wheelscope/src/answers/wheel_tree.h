// Lays the files of a wheel out as a folder of site-packages, in which imports can be followed.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "answers/wheel_imports.h"
#include "machine/imports.h"

namespace wheelscope {

constexpr std::string_view wheel_site = "wheel:";

// The wheel's files as a folder of site-packages.
class WheelTree {
 public:
  explicit WheelTree(const WheelFiles& files) : files_(files) {
    for (const auto& name : files.names) {
      for (auto path = std::string(wheel_site) + "/" + name; path.size() > wheel_site.size();) {
        const auto slash = path.rfind('/');
        if (!folders_[path.substr(0, slash)].insert(path.substr(slash + 1)).second) break;
        path.resize(slash);
      }
    }
  }

  static PythonFacts python_in(PythonFacts python) {
    python.site_packages = {std::string(wheel_site)};
    return python;
  }
  SourceTree tree() {
    return {.files_in = [this](const std::string& folder) { return folders_[folder]; },
            .read = [this](const std::string& path) { return read(path); }};
  }
  std::optional<std::string> read(const std::string& path) const {
    return files_.read ? files_.read(path.substr(wheel_site.size() + 1)) : std::nullopt;
  }
  // A file that makes Python look for modules in other folders of the wheel, too.
  bool has_pth() {
    return std::ranges::any_of(folders_[std::string(wheel_site)],
                               [](const std::string& name) { return name.ends_with(".pth"); });
  }

 private:
  const WheelFiles& files_;
  std::map<std::string, std::set<std::string>> folders_;
};

// Code that changes where modules are found, or makes some. To look itself up makes no other.
inline bool may_make_modules(std::string_view text) {
  constexpr std::string_view ways[] = {"sys.path", "meta_path", "path_hooks", "__path__"};
  constexpr std::string_view all = "sys.modules", itself = "[__name__]";
  for (auto at = text.find(all); at != text.npos; at = text.find(all, at + 1))
    if (!text.substr(at + all.size()).starts_with(itself)) return true;
  return std::ranges::any_of(ways, [&](auto way) { return text.find(way) != text.npos; });
}

}  // namespace wheelscope
