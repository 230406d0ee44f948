// Finds modules as Python's path finder does: a package, a module in machine code, a source file.
#include "machine/imports.h"

#include <algorithm>
#include <array>
#include <utility>

#include "source/budget.h"
#include "source/system.h"
#include "text/text.h"

namespace wheelscope {
namespace {

constexpr auto module_letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";

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
  const auto end = abi.find_first_of("-.");
  if ("cp" + abi.substr(0, end) != python.abi) return false;
  if (end == abi.npos || abi[end] == '.') return true;
  const auto triplet = abi.substr(end + 1);
  const auto& machine = python.architecture;
  return std::ranges::none_of(std::array<std::string_view, 6>{"x86_64", "aarch64", "powerpc64le",
                                                              "s390x", "riscv64", "arm-"},
                              [&](std::string_view other) {
                                const bool ours = other == machine ||
                                                  (other == "arm-" && machine.starts_with("arm")) ||
                                                  (other == "powerpc64le" && machine == "ppc64le");
                                return triplet.starts_with(other) && !ours && !machine.empty();
                              });
}

std::vector<std::string> import_names(const std::vector<std::string>& files) {
  std::set<std::string> packages, names;
  for (const auto& path : files) {
    const auto file = base_name(path);
    if (path.starts_with('/') || !(file.ends_with(".py") || file.ends_with(".so"))) continue;
    auto folder = path.substr(0, path.size() - file.size());
    if (folder.empty()) names.insert(file.substr(0, file.find('.')));
    // Folders with a dot are not imported: x-1.0.data/
    if (folder.empty() || folder.find('.') != folder.npos || !file.starts_with("__init__."))
      continue;
    folder.pop_back();
    std::ranges::replace(folder, '/', '.');
    packages.insert(std::move(folder));
  }
  for (const auto& package : packages) {
    auto parent = parent_of(package);
    while (!parent.empty() && !packages.contains(parent)) parent = parent_of(parent);
    if (parent.empty()) names.insert(package);
  }
  return {names.begin(), names.end()};
}

std::vector<std::string> import_names(const Distribution& distribution) {
  return import_names(recorded_files(distribution));
}

SourceTree tree_of_disk() {
  return {.files_in =
              [](const std::string& folder) {
                const auto names = entries_of(folder);
                return std::set(names.begin(), names.end());
              },
          .read = [](const std::string& path) -> std::optional<std::string> {
            auto text = read_text(path);
            return text ? std::optional(std::move(*text)) : std::nullopt;
          }};
}

std::set<std::string> modules_named_in(std::string_view machine_code,
                                       const std::set<std::string>& packages) {
  std::set<std::string> found;
  for (const auto& package : packages) {
    const auto start = package + ".";
    for (auto at = machine_code.find(start); at != machine_code.npos;
         at = machine_code.find(start, at + 1)) {
      const auto end = machine_code.find_first_not_of(module_letters, at);
      const auto name = machine_code.substr(at, end - at);
      if (name.size() > start.size()) found.emplace(name);
    }
  }
  return found;
}

std::string module_in_texts(std::string_view texts, const std::string& package) {
  const auto start = '\0' + package;
  for (auto at = texts.find(start); at != texts.npos; at = texts.find(start, at + 1)) {
    const auto end = texts.find_first_not_of(module_letters, at + 1);
    if (end != texts.npos && texts[end] == '\0' && end > at + start.size())
      return std::string(texts.substr(at + 1, end - at - 1));
  }
  return {};
}

std::string compared_in_texts(std::string_view texts, const std::string& own) {
  constexpr std::string_view end(" version mismatch", 18);  // with its zero
  constexpr std::size_t longest = 100;
  for (auto at = texts.find(end); at != texts.npos; at = texts.find(end, at + 1)) {
    const auto start = texts.rfind('\0', at) + 1;
    if (at - start > longest) continue;
    for (const auto& word : split(texts.substr(start, at - start), ' ')) {
      if (word != own && !module_in_texts(texts, word + '.').empty()) return word;
    }
  }
  return {};
}

const std::set<std::string>& Imports::files_in(const std::string& folder) {
  const auto [found, is_new] = folders_.try_emplace(folder);
  if (is_new) found->second = tree_.files_in(folder);
  return found->second;
}

void Imports::add_lost(const std::string& path) {
  const auto slash = path.rfind('/');
  lost_[path.substr(0, slash)].insert(path.substr(slash + 1));
}

std::size_t Imports::find(const std::string& name) {
  const auto known = by_name_.find(name);
  return known != by_name_.end() ? known->second : by_name_[name] = locate(name);
}

std::size_t Imports::locate(const std::string& name) {
  const auto parent = parent_of(name);
  if (parent.empty() && tree_.is_standard && tree_.is_standard(name)) return none;
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
    if (const auto lost = lost_.find(folder + "/" + last);
        lost != lost_.end() && lost->second.contains("__init__.py"))
      return add(folder + "/" + last + "/__init__.py", true);
    if (const auto lost = lost_.find(folder); lost != lost_.end()) {
      const auto file = lost->second.lower_bound(last + ".");
      if (file != lost->second.end() && file->starts_with(last + "."))
        return add(folder + "/" + *file, false);
    }
    has_folder |= files.contains(last) && !files_in(folder + "/" + last).empty();
  }
  return has_folder ? add("", true) : none;
}

// An import of a.b runs a first.
void Imports::add_with_parents(const std::string& name, Need need, Edges& found) {
  for (auto dot = name.find('.');; dot = name.find('.', dot + 1)) {
    const auto module = find(name.substr(0, dot));
    if (module == none) return;
    found.emplace_back(module, need);
    if (dot == name.npos) return;
  }
}

// Reads the modules that were not read before, on all cores.
void Imports::read(const std::vector<std::size_t>& modules, PythonReading reading) {
  std::vector<std::size_t> unread;
  for (const auto index : modules) {
    const auto& path = modules_[index].path;
    if (std::exchange(modules_[index].is_read, true)) continue;
    if (path.ends_with(".py")) unread.push_back(index);
    if (const auto native = native_imports_.find(path); native != native_imports_.end()) {
      link(index, {.imports = native->second});
    } else if (tree_.named_in && path.ends_with(".so")) {
      PythonSource source;
      for (const auto& name : tree_.named_in(path))
        source.imports.push_back({.module = name, .need = Need::depends});
      link(index, std::move(source));
    }
  }
  std::vector<PythonSource> sources(unread.size());
  run_on_all_cores(unread.size(), [&](std::size_t i) {
    if (const auto text = tree_.read(modules_[unread[i]].path))
      sources[i] = read_python_source(*text, target_, reading);
  });
  for (std::size_t i = 0; i < unread.size(); ++i) link(unread[i], std::move(sources[i]));
}

// The whole name of the module that a statement of this one takes names from, or imports.
std::string Imports::module_named(std::size_t index, const ImportStatement& statement) const {
  const auto& module = statement.module;
  if (statement.dots == 0) return module;
  auto package = modules_[index].name;
  const auto up = statement.dots - (modules_[index].is_package ? 1 : 0);
  for (std::size_t i = 0; i < up; ++i) package = parent_of(package);
  return package + (module.empty() || package.empty() ? "" : ".") + module;
}

std::string Imports::absent_from_package(const std::string& path,
                                         const ImportStatement& statement) {
  const auto name = module_named(by_path_[path], statement);
  for (auto dot = name.find('.'); dot != name.npos;) {
    const auto package = find(name.substr(0, dot));
    if (package == none) return {};
    const auto init = modules_[package].path;
    if (!init.empty() && base_name(init) != "__init__.py") return {};
    const auto start = dot + 1;
    dot = name.find('.', start);
    const auto part = name.substr(0, dot);
    const auto compiled = name.substr(start, dot - start) + ".pyc";  // without its source
    if (find(part) == none)
      return init.empty() || files_in(folder_of(init)).contains(compiled) ? "" : part;
  }
  return {};
}

const std::string& Imports::absent_from_cffi(const std::string& path,
                                             const std::map<std::string, Need>& files) {
  const auto [known, is_new] = absent_from_cffi_.try_emplace(path);
  auto absent = is_new ? source_of(path).cffi_names : std::vector<std::string>();
  if (absent.empty()) return known->second;
  bool is_made = false;
  for (const auto& [file, need] : files) {
    if (!file.ends_with(".so")) continue;
    const auto text = tree_.read(file).value_or("");
    if (find_in(text, "_cffi_backend") == text.npos) continue;
    is_made = true;
    std::erase_if(absent,
                  [&](const auto& name) { return find_in(text, name + '\0') != text.npos; });
  }
  if (is_made && !absent.empty()) known->second = absent.front();
  return known->second;
}

Imports::Edges Imports::edges_of(std::size_t index,
                                 const std::vector<ImportStatement>& statements) {
  Edges imports;
  for (const auto& statement : statements) {
    const auto module = module_named(index, statement);
    if (module.empty()) continue;
    add_with_parents(module, statement.need, imports);
    for (const auto& name : statement.names) {
      if (const auto found = find(module + "." + name); found != none)
        imports.emplace_back(found, statement.need);
    }
  }
  return imports;
}

void Imports::link(std::size_t index, PythonSource source) {
  // Looking for modules moves them, so they are found first.
  auto imports = edges_of(index, source.imports), tried = edges_of(index, source.tried);
  modules_[index].source = std::move(source);
  modules_[index].imports = std::move(imports);
  modules_[index].tried = std::move(tried);
}

// Walks level by level, so that files are read in parallel. A module is visited again if a second
// way to it is surer than the first.
std::map<std::string, Need> Imports::walk(const std::vector<std::string>& names, bool below,
                                          PythonReading reading, bool with_tried) {
  auto is_below = [&](const std::string& module) {
    return std::ranges::any_of(names, [&](const std::string& name) {
      return (module + ".").starts_with(name + ".") || name.starts_with(module + ".");
    });
  };
  Edges found;
  for (const auto& name : names) add_with_parents(name, Need::always, found);
  std::unordered_map<std::size_t, Need> best;
  while (!found.empty()) {
    std::vector<std::size_t> level;
    for (const auto& [index, need] : found) {
      if (below && !is_below(modules_[index].name)) continue;
      const auto [known, is_new] = best.try_emplace(index, need);
      if (!is_new && known->second >= need) continue;
      known->second = need;
      level.push_back(index);
    }
    read(level, reading);
    found.clear();
    for (const auto index : level) {
      for (const auto& [next, need] : modules_[index].imports)
        found.emplace_back(next, std::min(need, best[index]));
      if (!with_tried) continue;
      for (const auto& [next, need] : modules_[index].tried) found.emplace_back(next, need);
    }
  }
  std::map<std::string, Need> files;
  for (const auto& [index, need] : best) {
    if (!modules_[index].path.empty()) files.emplace(modules_[index].path, need);
  }
  return files;
}

}  // namespace wheelscope
