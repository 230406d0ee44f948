// Looks for modules in folders, and for the names of those without a file among the interpreter's
// texts: it lists what is part of it, and from 3.10 on its whole standard library.
#include "machine/imports.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "machine/python_source.h"
#include "source/source.h"
#include "source/system.h"
#include "text/text.h"

namespace wheelscope {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> standard_libraries(const PythonFacts& python) {
  std::vector<std::string> folders;
  for (const auto* lib : {"/lib/python", "/lib64/python"}) {
    const auto folder =
        python.base_prefix + lib + python.minor() + (python.free_threaded() ? "t" : "");
    std::error_code error;
    if (fs::exists(folder + "/os.py", error)) folders.push_back(folder);
  }
  return folders;
}

bool has_unknown_path_file(const std::string& folder) {
  return std::ranges::any_of(path_files_in(folder), [](const std::string& file) {
    return !read_path_file(file).is_complete;
  });
}

// True if it is a text, or the end of one: linkers keep `sys` as the last part of `_sys`.
bool has_text(const std::string& path, const std::string& name) {
  const auto file = Source::map(path);
  if (!file) return false;
  return find_in(file->bytes().text(), name + '\0') != std::string_view::npos;
}

}  // namespace

ModulesHere::ModulesHere(const PythonFacts& python)
    : python_(python),
      standard_(standard_libraries(python)),
      is_open_(standard_.empty() ||
               std::ranges::any_of(python.site_packages, has_unknown_path_file)) {}

// True for x/, x.py or x.cpython-311-x86_64-linux-gnu.so.
bool ModulesHere::has_module(const std::string& folder, const std::string& name) {
  const auto [known, is_new] = folders_.try_emplace(folder);
  for (const auto& file : entries_of(is_new ? folder : "")) {
    // Folders with a dot are none: ruamel.yaml.clib.libs
    if (file.find('.') == file.npos || file.ends_with(".so") || file.ends_with(".py") ||
        file.ends_with(".pyc"))
      known->second.insert(stem_of(file));
  }
  return known->second.contains(name);
}

bool ModulesHere::is_standard(const std::string& name) {
  return std::ranges::any_of(standard_, [&](const auto& at) { return has_module(at, name); });
}

bool ModulesHere::is_installed(const std::string& module) {
  auto path = "/" + module;
  std::ranges::replace(path, '.', '/');
  return std::ranges::any_of(python_.site_packages, [&](const auto& site) {
    return has_module(folder_of(site + path), base_name(path));
  });
}

bool ModulesHere::may_have(const std::string& name) {
  const auto [known, is_new] = known_.try_emplace(name);
  if (is_new) known->second = is_open_ || find(name);
  return known_[name];
}

bool ModulesHere::may_have(const std::string& module, const std::string& name) {
  // setuptools has a distutils of its own, which it puts in place of Python's.
  if (name.starts_with("__") || module.starts_with("distutils")) return true;
  auto path = module;
  std::ranges::replace(path, '.', '/');
  for (const auto& folder : standard_) {
    const auto package = folder + "/" + path;
    const bool is_package = has_module(package, "__init__");
    const auto [known, is_new] = names_.try_emplace(package);
    if (is_new) {
      const auto text = read_text(package + (is_package ? "/__init__.py" : ".py"));
      if (text) known->second = names_in(*text);
    }
    const auto& names = known->second;
    if (names && !names->contains(name) && !(is_package && has_module(package, name))) return false;
  }
  return true;
}

bool ModulesHere::find(const std::string& name) {
  auto path = name;
  std::ranges::replace(path, '.', '/');
  auto folders = python_.site_packages;
  for (const auto& folder : standard_) {
    folders.push_back(folder);
    folders.push_back(folder + "/lib-dynload");
  }
  for (const auto& folder : folders) {
    const auto whole = folder + "/" + path;
    const auto parent = whole.substr(0, whole.rfind('/'));
    if (has_module(parent, base_name(whole))) return true;
    // A package of that name with code of its own may make modules as it likes.
    if (parent != folder && has_module(parent, "__init__")) return true;
  }
  return name == "distutils" ? may_have("_distutils_hack") : is_in_interpreter(name);
}

bool ModulesHere::is_in_interpreter(const std::string& name) const {
  std::error_code error;
  std::vector<std::string> files = {fs::canonical(python_.executable, error).string()};
  for (const auto* lib : {"/lib", "/lib64"}) {
    const auto folder = python_.base_prefix + lib;
    for (const auto& name : entries_of(folder))
      if (name.starts_with("libpython3")) files.push_back(folder + "/" + name);
  }
  auto has = [&](const std::string& text) {
    return std::ranges::any_of(files, [&](const auto& file) { return has_text(file, text); });
  };
  return has(name) || !has("_sre");  // which every interpreter has
}

}  // namespace wheelscope
