// Reads the lines of .pth files, and the finders that setuptools writes for editable projects.
#include "machine/distributions.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "machine/python_syntax.h"
#include "source/system.h"
#include "text/text.h"

namespace wheelscope {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

void add_once(std::vector<std::string>& all, const std::vector<std::string>& folders) {
  for (const auto& folder : folders) {
    if (!contains(all, folder)) all.push_back(folder);
  }
}

// meson-python's finder ends with install(..., '/project/build/cp311', ...): Meson's build folder,
// where a list says which file of the project, or of the build, is installed where.
std::optional<std::vector<std::string>> folders_of_meson(std::string_view finder) {
  std::vector<std::string> folders;
  const auto call = std::min(finder.rfind("\ninstall("), finder.size());
  for (const auto& build : quoted_texts(finder.substr(call))) {
    const auto list = build + "/meson-info/intro-install_plan.json";
    const auto plan = Json::parse(read_text(list).value_or(""), nullptr, false);
    for (const auto& kind : plan.is_object() ? plan : Json::object()) {
      for (const auto& [source, target] : kind.items()) {
        const auto place = target.is_object() ? target.value("destination", Json()) : Json();
        const auto installed = place.is_string() ? place.get<std::string>() : "";
        const auto end = installed.substr(std::min(installed.find('/'), installed.size()));
        if (!installed.starts_with("{py_p")) continue;
        if (end.empty() || !source.ends_with(end)) return std::nullopt;
        add_once(folders, {source.substr(0, source.size() - end.size())});
      }
    }
  }
  return folders.empty() ? std::nullopt : std::optional(folders);
}

// setuptools lists where each module is: MAPPING: dict[str, str] = {'a.b': '/project/a/b'}.
// Nothing: a module has another name than its folder.
std::optional<std::vector<std::string>> folders_of_finder(std::string_view text) {
  if (text.find("MesonpyMetaFinder") != text.npos) return folders_of_meson(text);
  const auto start = std::min(text.find("\nMAPPING"), text.size());
  const auto open = std::min(text.find('{', start), text.size());
  const auto pairs = quoted_texts(text.substr(open, text.find('}', open) - open));
  std::vector<std::string> folders;
  for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
    auto end = "/" + pairs[i];
    std::ranges::replace(end, '.', '/');
    if (!pairs[i + 1].ends_with(end)) return std::nullopt;
    folders.push_back(pairs[i + 1].substr(0, pairs[i + 1].size() - end.size()));
  }
  return folders.empty() ? std::nullopt : std::optional(folders);
}

}  // namespace

PathFile read_path_file(const std::string& path) {
  PathFile found;
  bool has_finder = false;  // of an unknown kind
  const auto text = read_text(path);
  if (!text) return {.is_complete = false};
  for (const auto& line : split(*text, '\n')) {
    const std::string words(trim(line));
    if (words.empty() || words.starts_with('#')) continue;
    if (words.starts_with("import ") || words.starts_with("import\t")) {
      const std::string module(first_word(trim(std::string_view(words).substr(6))));
      if (module.find("editable") == module.npos) continue;
      const auto finder = read_text(folder_of(path) + "/" + module + ".py");
      const auto folders = folders_of_finder(finder.value_or(""));
      if (folders) add_once(found.folders, *folders);
      has_finder |= !folders;
      continue;
    }
    const auto place = (fs::path(folder_of(path)) / words).lexically_normal().string();
    std::error_code error;
    if (fs::is_directory(place, error))
      add_once(found.folders, {place});
    else
      found.is_complete &= !fs::exists(place, error);  // an archive
  }
  // That of scikit-build-core finds modules in the folders beside it and in site-packages.
  found.is_complete &= !has_finder || !found.folders.empty();
  return found;
}

std::vector<std::string> path_files_in(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& name : entries_of(folder)) {
    if (name.ends_with(".pth") && !name.starts_with('.')) files.push_back(folder + "/" + name);
  }
  std::ranges::sort(files);
  return files;
}

std::vector<std::string> import_folders(const std::vector<std::string>& site_packages) {
  std::vector<std::string> folders;
  for (const auto& folder : split(environment_variable("PYTHONPATH"), ':')) {
    std::error_code error;
    if (const auto place = fs::absolute(folder, error).lexically_normal();
        !error && !folder.empty())
      add_once(folders, {place.string()});
  }
  for (const auto& site : site_packages) {
    add_once(folders, {site});
    for (const auto& file : path_files_in(site)) add_once(folders, read_path_file(file).folders);
  }
  return folders;
}

}  // namespace wheelscope
