// Lays the wheel's files out as a folder of site-packages, and follows the imports there.
#include "answers/wheel_imports.h"

#include <algorithm>

#include "text/text.h"

namespace wheelscope {
namespace {

constexpr std::string_view site = "wheel:";

std::string stem(const std::string& path) {
  const auto name = base_name(path);
  return name.substr(0, name.find('.'));
}

// The modules of a wheel, by the folders and files that it has.
class OwnModules {
 public:
  explicit OwnModules(const std::vector<std::string>& files) {
    for (const auto& file : files) {
      for (auto end = file.find('/'); end != file.npos; end = file.find('/', end + 1))
        names_.insert(file.substr(0, end));
      const auto slash = file.rfind('/') + 1;  // 0: none
      names_.insert(file.substr(0, file.find('.', slash)));
    }
  }

  // The first module of `a.b` that is not there; empty: none, as far as files tell.
  std::string first_missing(const std::string& module, const HasModule& may_be_there) const {
    const auto dot = module.find('.');
    const auto top = module.substr(0, dot);
    if (!names_.contains(top)) return may_be_there(top) ? "" : top;
    if (dot == module.npos || names_.contains(top + "/__init__")) return {};
    const auto next = module.substr(dot + 1, module.find('.', dot + 1) - dot - 1);
    if (names_.contains(top + "/" + next) || may_be_there(top + "." + next)) return {};
    return top + "." + next;
  }

 private:
  std::set<std::string> names_;  // with slashes, without endings
};

}  // namespace

Refusal refusal_in(const WheelFiles& files, const PythonFacts& python,
                   const HasModule& may_be_there) {
  const auto target = target_of(python.version, python.architecture);
  const OwnModules own(files.names);
  Refusal worst;
  std::size_t packages = 0, without_module = 0;
  for (auto name : import_names(files.names)) {
    ++packages;
    std::ranges::replace(name, '.', '/');
    for (const auto& file : {name + "/__init__.py", name + ".py"}) {
      const auto text = files.read ? files.read(file) : std::nullopt;
      if (!text) continue;
      const auto source = read_python_source(*text, target);
      if (source.refuses > worst.need) worst = {file, "", source.refuses};
      if (!may_be_there || text->find("sys.path") != text->npos) break;
      for (const auto& statement : source.imports) {
        if (statement.dots > 0 || statement.need != Need::always) continue;
        const auto missing = own.first_missing(statement.module, may_be_there);
        if (missing.empty()) continue;
        ++without_module;
        if (worst.file.empty()) worst = {file, missing};
        break;
      }
      break;
    }
  }
  if (!worst.module.empty() && without_module == packages) worst.need = Need::always;
  return worst;
}

WheelImports::WheelImports(const PythonFacts& python, const WheelFiles& files) {
  auto inside = python;
  inside.site_packages = {std::string(site)};
  std::map<std::string, std::set<std::string>> folders;
  std::set<std::string> libraries;
  for (const auto& name : files.names) {
    if (name.find(".so") != name.npos) libraries.insert(stem(name));
    for (auto path = std::string(site) + "/" + name; path.size() > site.size();) {
      const auto slash = path.rfind('/');
      if (!folders[path.substr(0, slash)].insert(path.substr(slash + 1)).second) break;
      path.resize(slash);
    }
  }
  Imports imports(
      inside,
      {.files_in = [&](const std::string& folder) { return folders[folder]; },
       .read = [&](const std::string& path) { return files.read(path.substr(site.size() + 1)); }});
  run_ = imports.files_run_by(import_names(files.names));
  std::vector<const PythonSource*> sources;
  for (const auto& [path, need] : run_) {
    if (!path.ends_with(".py")) continue;
    const auto& source = imports.source_of(path);
    sources.push_back(&source);
    for (const auto& [name, scope] : source.scopes) {
      if (scope.raises && scope.asks_for_cuda) asks_for_cuda_ = path.substr(site.size() + 1);
    }
  }
  openings_ = std::make_unique<Openings>(sources, libraries);
}

Need WheelImports::imported(const std::string& path) const {
  const auto found = run_.find(std::string(site) + "/" + path);
  return found == run_.end() ? Need::never : found->second;
}

Need WheelImports::need_of(const std::string& path, bool is_module) const {
  const auto found = run_.find(std::string(site) + "/" + path);
  if (found != run_.end()) return found->second;
  const auto name = stem(path);
  if (is_module && openings_->must_open_module(name)) return Need::always;
  // A package may import the module that bears its own name by that name: cv2/cv2.abi3.so.
  const bool bears_name = base_name(folder_of(path)) == name;
  if (is_module) return bears_name && openings_->mentions(name) ? Need::depends : Need::never;
  if (openings_->must_open_by_name(name)) return Need::always;
  // Code that is run has its name, or makes up names of libraries when it is run.
  return openings_->mentions(name) || openings_->must_open(name, false) ? Need::depends
                                                                        : Need::never;
}

}  // namespace wheelscope
