// Finds modules as Python's path finder does: a package, a module in machine code, a source file.
#include "machine/imports.h"

#include <algorithm>
#include <filesystem>
#include <thread>
#include <utility>

#include "packaging/record.h"
#include "source/files.h"
#include "source/parallel.h"
#include "text/text.h"

namespace wheelscope {
namespace {

namespace fs = std::filesystem;

std::string parent_of(const std::string& name) {
  const auto dot = name.rfind('.');
  return dot == name.npos ? std::string() : name.substr(0, dot);
}

}  // namespace

bool is_module_for(const PythonFacts& python, const std::string& path) {
  const auto name = base_name(path);
  constexpr std::string_view mark = ".cpython-";
  const auto at = name.find(mark);
  if (at == name.npos) return name.find(".pypy") == name.npos;
  const auto abi = name.substr(at + mark.size());
  return "cp" + abi.substr(0, abi.find_first_of("-.")) == python.abi;
}

std::vector<std::string> import_names(const Distribution& distribution) {
  std::set<std::string> packages, deeper, names;
  const auto record = read_text(distribution.dist_info + "/RECORD");
  if (!record) return {};
  for (const auto& line : parse_record(*record)) {
    const auto parts = split(line.path, '/');
    const auto& file = parts.back();
    if (line.path.starts_with("..") || line.path.starts_with('/')) continue;
    if (parts.size() == 1 && (file.ends_with(".py") || file.ends_with(".so")))
      names.insert(file.substr(0, file.find('.')));
    if (file != "__init__.py") continue;
    if (parts.size() == 2) packages.insert(parts[0]);
    if (parts.size() == 3) deeper.insert(parts[0] + "." + parts[1]);
  }
  for (const auto& name : deeper) {
    if (!packages.contains(parent_of(name))) names.insert(name);
  }
  names.insert(packages.begin(), packages.end());
  return {names.begin(), names.end()};
}

const std::set<std::string>& Imports::files_in(const std::string& folder) {
  const auto [found, is_new] = folders_.try_emplace(folder);
  if (is_new) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error))
      found->second.insert(entry.path().filename().string());
  }
  return found->second;
}

std::size_t Imports::find(const std::string& name) {
  const auto known = by_name_.find(name);
  return known != by_name_.end() ? known->second : by_name_[name] = locate(name);
}

std::size_t Imports::locate(const std::string& name) {
  const auto parent = parent_of(name);
  const auto last = parent.empty() ? name : name.substr(parent.size() + 1);
  auto add = [&](std::string path, bool is_package) {
    if (!path.empty()) by_path_.try_emplace(path, modules_.size());
    modules_.push_back({.name = name, .path = std::move(path), .is_package = is_package});
    return modules_.size() - 1;
  };
  auto inside = parent;
  std::ranges::replace(inside, '.', '/');
  bool has_folder = false;
  for (const auto& site : python_.site_packages) {
    const auto folder = inside.empty() ? site : site + "/" + inside;
    const auto& files = files_in(folder);
    if (files.contains(last) && files_in(folder + "/" + last).contains("__init__.py"))
      return add(folder + "/" + last + "/__init__.py", true);
    for (auto file = files.lower_bound(last + "."); file != files.end(); ++file) {
      if (!file->starts_with(last + ".")) break;
      if (file->ends_with(".so") && is_module_for(python_, *file))
        return add(folder + "/" + *file, false);
    }
    if (files.contains(last + ".py")) return add(folder + "/" + last + ".py", false);
    has_folder |= files.contains(last) && !files_in(folder + "/" + last).empty();
  }
  return has_folder ? add("", true) : none;
}

// An import of a.b runs a first.
void Imports::add_with_parents(const std::string& name, std::vector<std::size_t>& found) {
  for (auto dot = name.find('.');; dot = name.find('.', dot + 1)) {
    const auto module = find(name.substr(0, dot));
    if (module == none) return;
    found.push_back(module);
    if (dot == name.npos) return;
  }
}

// Those that were not read before, on all cores.
void Imports::read(const std::vector<std::size_t>& modules, PythonReading reading) {
  std::vector<std::size_t> unread;
  for (const auto index : modules) {
    if (!std::exchange(modules_[index].is_read, true) && modules_[index].path.ends_with(".py"))
      unread.push_back(index);
  }
  std::vector<PythonSource> sources(unread.size());
  run_within_budget(std::vector<std::uint64_t>(unread.size()), 0,
                    std::max(1U, std::thread::hardware_concurrency()), [&](std::size_t i) {
                      if (const auto text = read_text(modules_[unread[i]].path))
                        sources[i] = read_python_source(*text, reading);
                    });
  for (std::size_t i = 0; i < unread.size(); ++i) link(unread[i], std::move(sources[i]));
}

void Imports::link(std::size_t index, PythonSource source) {
  std::vector<std::size_t> imports;
  for (const auto& statement : source.imports) {
    if (statement.optional) continue;
    auto module = statement.module;
    if (statement.dots > 0) {
      auto package = modules_[index].name;
      const auto up = statement.dots - (modules_[index].is_package ? 1 : 0);
      for (std::size_t i = 0; i < up; ++i) package = parent_of(package);
      module = package + (module.empty() || package.empty() ? "" : ".") + module;
    }
    if (module.empty()) continue;
    add_with_parents(module, imports);
    for (const auto& name : statement.names) {
      if (const auto found = find(module + "." + name); found != none) imports.push_back(found);
    }
  }
  modules_[index].source = std::move(source);
  modules_[index].imports = std::move(imports);
}

std::vector<std::size_t> Imports::next_level(const std::vector<std::size_t>& level) const {
  std::vector<std::size_t> next;
  for (const auto index : level)
    next.insert(next.end(), modules_[index].imports.begin(), modules_[index].imports.end());
  return next;
}

std::set<std::string> Imports::files_run_by(const std::vector<std::string>& names) {
  auto is_below = [&](const std::string& module) {
    return std::ranges::any_of(names, [&](const std::string& name) {
      return (module + ".").starts_with(name + ".") || name.starts_with(module + ".");
    });
  };
  std::vector<std::size_t> level;
  for (const auto& name : names) add_with_parents(name, level);
  std::vector<bool> seen;
  std::set<std::string> files;
  while (!level.empty()) {
    seen.resize(modules_.size());
    std::erase_if(level, [&](std::size_t index) {
      const bool known = seen[index];
      seen[index] = true;
      return known || !is_below(modules_[index].name);
    });
    for (const auto index : level) {
      if (!modules_[index].path.empty()) files.insert(modules_[index].path);
    }
    read(level, PythonReading::all);
    level = next_level(level);
  }
  return files;
}

bool Imports::runs(const std::vector<std::string>& names, const std::string& file) {
  std::vector<std::size_t> level;
  for (const auto& name : names) add_with_parents(name, level);
  auto& known = not_leading_[file];
  auto seen = known;
  while (!level.empty()) {
    seen.resize(modules_.size());
    std::erase_if(level, [&](std::size_t index) {
      const bool is_known = seen[index];
      seen[index] = true;
      return is_known;
    });
    for (const auto index : level) {
      if (modules_[index].path == file) return true;
    }
    read(level, PythonReading::imports);
    level = next_level(level);
  }
  known = std::move(seen);  // none of all these leads there
  return false;
}

}  // namespace wheelscope
