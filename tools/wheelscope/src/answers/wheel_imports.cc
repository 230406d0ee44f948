// Follows the imports of a wheel's packages through its own files.
#include "answers/wheel_imports.h"

#include <algorithm>
#include <utility>

#include "answers/wheel_tree.h"
#include "packaging/requirement.h"
#include "text/text.h"

namespace wheelscope {
namespace {

// The modules of a wheel, by the folders and files that it has.
class OwnModules {
 public:
  explicit OwnModules(const std::vector<std::string>& files) {
    for (const auto& file : files) {
      for (auto end = file.find('/'); end != file.npos; end = file.find('/', end + 1))
        folders_.insert(file.substr(0, end));
      const auto slash = file.rfind('/') + 1;  // 0: none
      files_.insert(file.substr(0, file.find('.', slash)));
      if (file.find(".so", slash) != file.npos) libraries_.insert(stem_of(file));
    }
  }

  const std::set<std::string>& libraries() const { return libraries_; }

  bool has(const std::string& name) const {
    return folders_.contains(name) || files_.contains(name);
  }

  // True if a module `a.b` exists for the text `a.bc`: Cython's texts run into each other.
  bool has_start_of(std::string text) const {
    std::ranges::replace(text, '.', '/');
    for (const auto least = text.find('/') + 1; text.size() > least; text.pop_back()) {
      if (has(text)) return true;
    }
    return false;
  }

  // The first module of `a.b` that is not there; empty: none, as far as files tell.
  std::string first_missing(const std::string& module, const OtherModules& others) const {
    const auto dot = module.find('.');
    const auto top = module.substr(0, dot);
    if (!has(top)) return others.may_be_there(top) ? "" : top;
    // A module with code of its own may make others.
    if (dot == module.npos || files_.contains(top) || files_.contains(top + "/__init__")) return {};
    const auto next = module.substr(dot + 1, module.find('.', dot + 1) - dot - 1);
    if (has(top + "/" + next) || others.may_be_there(top + "." + next)) return {};
    return top + "." + next;
  }

 private:
  std::set<std::string> folders_, files_;  // with slashes, without endings
  std::set<std::string> libraries_;        // by the first part of their names
};

std::string top_of(const std::string& name) {
  return name.substr(0, name.find_first_of("./"));
}

// What keeps one package of a wheel from being imported.
class PackageRefusal {
 public:
  PackageRefusal(WheelTree& tree, Imports& imports, const std::vector<std::string>& sites,
                 const OwnModules& own, const OtherModules& others)
      : tree_(tree), imports_(imports), sites_(sites), own_(own), others_(others) {}

  Refusal of(const std::string& package) {
    worst_ = absent_ = {};
    if (!others_.may_be_there) return by_first_file(package);
    const auto run = others_.imports ? imports_.reached({package})
                                     : imports_.files_run_by({package}, PythonReading::openings);
    std::vector<const PythonSource*> sources;  // of the package itself
    for (const auto& [path, need] : run) {
      if (!path.ends_with(".py") || need == Need::never) continue;
      const auto& source = imports_.source_of(path);
      keep(worst_, {.why = Why::refuses, .who = path}, std::min(need, source.refuses));
      if (top_of(inside(path)) == top_of(package)) sources.push_back(&source);
      if (const auto name = others_.imports ? imports_.absent_from_cffi(path, run) : "";
          !name.empty())
        keep(worst_, {.why = Why::cffi_name_absent, .who = path, .what = name},
             std::min(need, Need::depends));
      for (const auto& statement : source.imports)
        look_at(statement, path, std::min(need, statement.need));
    }
    if (absent_.need > worst_.need && may_be_made(run)) absent_.need = Need::depends;
    const auto opened = Openings(sources, own_.libraries()).libraries_elsewhere();
    if (!opened.empty() && std::ranges::none_of(opened, others_.may_open))
      keep(worst_, {.why = Why::library_opened, .who = package, .what = *opened.begin()},
           Need::depends);
    return absent_.need > worst_.need ? absent_ : worst_;
  }

 private:
  Refusal by_first_file(std::string package) {
    std::ranges::replace(package, '.', '/');
    for (const auto* ending : {"/__init__.py", ".py"}) {
      const auto path = std::string(wheel_site) + "/" + package + ending;
      if (const auto text = tree_.read(path))
        keep(worst_, {.why = Why::refuses, .who = path}, imports_.read(*text).refuses);
    }
    return worst_;
  }

  // A file's path inside of site-packages.
  std::string inside(const std::string& path) const {
    std::size_t start = 0;  // one may be inside another
    for (const auto& folder : sites_) {
      if (path.starts_with(folder + "/")) start = std::max(start, folder.size() + 1);
    }
    return path.substr(start);
  }

  void keep(Refusal& worst, Reason reason, Need need) const {
    if (need <= worst.need) return;
    worst = {std::move(reason), need};
    worst.reason.who = inside(worst.reason.who);
  }

  // Whether code that is run may make the absent module: that of the package which imports it, or
  // which should have it.
  bool may_be_made(const std::map<std::string, Need>& run) const {
    const auto& importer = absent_.reason.who;
    const auto& module = absent_.reason.what;
    return std::ranges::any_of(run, [&](const auto& file) {
      const auto& path = file.first;
      const auto top = top_of(inside(path));
      if (top != top_of(importer) && top != top_of(module)) return false;
      if (path.ends_with(".py")) return may_make_modules(imports_.text_of(path).value_or(""));
      return module.find('.') != module.npos &&
             imports_.text_of(path).value_or("").find(module) != std::string::npos;
    });
  }

  std::string absent_part(const std::string& path, const ImportStatement& statement) {
    auto absent = imports_.absent_from_package(path, statement);
    const bool is_brought = !absent.empty() && !others_.imports && others_.may_be_there(absent);
    return is_brought ? "" : absent;
  }

  void look_at(const ImportStatement& statement, const std::string& path, Need need) {
    if (need != Need::always) return;
    auto missing = statement.dots == 0 ? own_.first_missing(statement.module, others_) : "";
    if (missing.empty()) missing = absent_part(path, statement);
    if (!missing.empty()) {
      if ((others_.imports || !tree_.has_pth()) && statement.need_if_absent == Need::always)
        keep(absent_, {.why = Why::module_absent, .who = path, .what = missing}, need);
      return;
    }
    if (statement.dots > 0 || own_.has(top_of(statement.module))) return;
    if (others_.lacking && !tree_.has_pth() && statement.need_if_absent == Need::always) {
      if (auto lacking = others_.lacking(statement); lacking.reason) {
        lacking.reason.who = path;
        return keep(absent_, std::move(lacking.reason), std::min(need, lacking.need));
      }
    }
    for (const auto& name : statement.names) {
      if (name != "*" && !others_.may_have(statement.module, name))
        keep(worst_, {.why = Why::name_absent, .who = path, .what = name, .here = statement.module},
             need);
    }
  }

  WheelTree& tree_;
  Imports& imports_;
  const std::vector<std::string>& sites_;
  const OwnModules& own_;
  const OtherModules& others_;
  Refusal worst_, absent_;  // proved; a module that is nowhere
};

// The name of the distribution, as its .dist-info has it; empty: it is not there.
std::string distribution_in(const std::vector<std::string>& files) {
  for (const auto& file : files) {
    const auto folder = file.substr(0, file.find('/'));
    if (folder.ends_with(".dist-info")) return canonical_name(folder.substr(0, folder.find('-')));
  }
  return {};
}

// Follows machine code, whose texts tell what it may import, into required wheels: those that share
// a folder with the wheel, and those that a package which is one module of machine code names. A
// module that is all of a wheel may also say by its texts what it needs. What is found there is
// never more than a doubt.
class MachineCodeImports {
 public:
  MachineCodeImports(const WheelFiles& files, const PythonFacts& python, const OtherModules& others)
      : files_(files), python_(python), others_(others) {}

  Refusal doubt() {
    std::vector<std::string> modules;
    const auto own = import_names(files_.names);
    for (const auto& name : own) {
      if (const auto dot = name.find('.'); dot != name.npos) shared_.insert(name.substr(0, dot));
      for (const auto& file : files_.names) {
        if (!file.starts_with(name + ".") || !file.ends_with(".so")) continue;
        compiled_.insert(name);
        modules.push_back(file);
      }
    }
    if (shared_.empty() && modules.empty()) return {};
    const bool is_all = own.size() == 1 && modules.size() == 1;
    const auto file = modules.empty() ? "" : modules.front();
    std::string texts;  // of the modules, whose wheels may be far away
    const auto read = [&] {
      for (const auto& one : std::exchange(modules, {})) texts += files_.read(one).value_or("");
    };
    auto package = distribution_in(files_.names);  // ruamel-yaml-clib is a part of ruamel.yaml
    package.resize(std::min(package.size(), package.rfind('-') + 1));
    std::ranges::replace(package, '-', '.');
    if (is_all && !package.empty() && !others_.may_be_there(package.substr(0, package.find('.')))) {
      read();
      if (auto module = module_in_texts(texts, package); !module.empty())
        return {{.why = Why::module_named, .who = file, .what = std::move(module)}, Need::depends};
    }
    auto packages = shared_;
    std::vector<WheelFiles> required;
    if (others_.required) {
      required = others_.required([&](const std::vector<std::string>& names) {
        read();
        bool wanted = std::ranges::any_of(names, [&](const auto& name) {
          return shared_.contains(name.substr(0, name.find('/')));
        });
        for (const auto& name : import_names(names)) {
          if (texts.find(name + ".") == texts.npos) continue;
          packages.insert(name);
          wanted = true;
        }
        return wanted;
      });
    } else if (is_all) {
      read();
    }
    if (auto other = is_all ? compared_in_texts(texts, own.front()) : ""; !other.empty())
      return {{.why = Why::module_compared, .who = file, .what = std::move(other)}, Need::depends};
    return required.empty() && (shared_.empty() || !others_.required)
               ? Refusal()
               : doubt_among(required, packages);
  }

 private:
  Refusal doubt_among(const std::vector<WheelFiles>& required,
                      const std::set<std::string>& packages) {
    std::map<std::string, const WheelFiles*> owners;
    for (const auto& name : files_.names) owners.emplace(name, &files_);
    for (const auto& one : required) {
      for (const auto& name : one.names) owners.emplace(name, &one);
    }
    WheelFiles all{.read = [&](const std::string& name) { return owners.at(name)->read(name); }};
    for (const auto& [name, owner] : owners) all.names.push_back(name);
    WheelTree folder(all);
    auto tree = folder.tree();
    tree.named_in = [&](const std::string& path) {
      return modules_named_in(folder.read(path).value_or(""), packages);
    };
    const auto inside = WheelTree::python_in(python_);
    Imports imports(inside, std::move(tree));
    const OwnModules modules(all.names);
    for (const auto& [path, need] : imports.reached(import_names(files_.names))) {
      if (need == Need::never) continue;
      const auto name = path.substr(wheel_site.size() + 1);
      if (is_shared(name, '/') && hides_names(path, folder))
        return {{.why = Why::imports_hidden, .who = name}, Need::depends};
      for (const auto& statement : imports.source_of(path).imports) {
        if (statement.dots > 0) continue;
        if (auto reason = reason_for(statement, name, owners.at(name) == &files_, modules))
          return {std::move(reason), Need::depends};
      }
    }
    return {};
  }

  bool is_shared(const std::string& name, char end) const {
    return shared_.contains(name.substr(0, name.find(end)));
  }

  // Cython packs the texts of a module from 3.3 on.
  static bool hides_names(const std::string& path, const WheelTree& folder) {
    return path.ends_with(".so") && folder.read(path).value_or("").find(
                                        "LZSS string data decompression failed") != path.npos;
  }

  Reason reason_for(const ImportStatement& statement, const std::string& file, bool is_own,
                    const OwnModules& modules) const {
    const auto& module = statement.module;
    if (!is_own && compiled_.contains(module) && !statement.names.empty())
      return {.why = Why::imports_in_circle,
              .who = file,
              .what = statement.names.front(),
              .here = module};
    if (!file.ends_with(".so") || !is_shared(module, '.')) return {};
    auto missing = modules.first_missing(module, others_);
    if (missing.empty() || modules.has_start_of(missing)) return {};
    return {.why = Why::module_named, .who = file, .what = std::move(missing)};
  }

  const WheelFiles& files_;
  const PythonFacts& python_;
  const OtherModules& others_;
  std::set<std::string> shared_;    // folders that several distributions have modules in
  std::set<std::string> compiled_;  // packages that are one module of machine code
};

}  // namespace

WheelFiles installed_files(const Distribution& distribution) {
  WheelFiles files{.names = recorded_files(distribution),
                   .read = [distribution, read = tree_of_disk().read](const std::string& name) {
                     return read(distribution.path_of(name));
                   }};
  files.names.insert(files.names.begin(), base_name(distribution.dist_info) + "/RECORD");
  return files;
}

bool has_module(const std::vector<std::string>& names, std::string module) {
  std::ranges::replace(module, '.', '/');
  return std::ranges::any_of(names, [&](const std::string& name) {
    return name.starts_with(module + "/") || name.starts_with(module + ".");
  });
}

Refusal refusal_in(const WheelFiles& files, const PythonFacts& python, const OtherModules& others) {
  WheelTree tree(files);
  const auto inside = WheelTree::python_in(python);
  Imports own_imports(inside, tree.tree());
  const OwnModules own(files.names);
  const auto distribution = distribution_in(files.names);
  auto packages = others.imports
                      ? PackageRefusal(tree, *others.imports, python.site_packages, own, others)
                      : PackageRefusal(tree, own_imports, inside.site_packages, own, others);
  Refusal first, main;
  bool has_main = false, all = true;
  for (const auto& name : import_names(files.names)) {
    const bool is_main = canonical_name(name) == distribution ||
                         canonical_name(name.substr(0, name.find('.'))) == distribution;
    auto refusal = packages.of(name);
    has_main |= is_main;
    all &= refusal.need == Need::always;
    if (is_main && refusal.need > main.need) main = refusal;
    if (refusal.need > first.need) first = std::move(refusal);
  }
  if (has_main && main.need == Need::never) first.need = Need::never;
  if (!has_main && !all) first.need = std::min(first.need, Need::depends);
  if (main.need == Need::never && first.need == Need::never && others.may_be_there) {
    if (auto doubt = MachineCodeImports(files, python, others).doubt(); doubt.reason) return doubt;
  }
  return main.need != Need::never ? main : first;
}

WheelImports::WheelImports(const PythonFacts& python, const WheelFiles& files) {
  WheelTree tree(files);
  const auto inside = WheelTree::python_in(python);
  Imports imports(inside, tree.tree());
  run_ = imports.files_run_by(import_names(files.names));
  std::vector<const PythonSource*> sources;
  for (const auto& [path, need] : run_) {
    if (!path.ends_with(".py")) continue;
    const auto& source = imports.source_of(path);
    sources.push_back(&source);
    for (const auto& [name, scope] : source.scopes) {
      if (scope.raises && scope.asks_for_cuda) asks_for_cuda_ = path.substr(wheel_site.size() + 1);
    }
  }
  openings_ = std::make_unique<Openings>(sources, OwnModules(files.names).libraries());
}

Need WheelImports::imported(const std::string& path) const {
  const auto found = run_.find(std::string(wheel_site) + "/" + path);
  return found == run_.end() ? Need::never : found->second;
}

bool WheelImports::runs_source_of(const std::string& path) const {
  return run_.contains(std::string(wheel_site) + "/" + path.substr(0, path.find('.')) + ".py");
}

Need WheelImports::need_of(const std::string& path, bool is_module) const {
  const auto found = run_.find(std::string(wheel_site) + "/" + path);
  if (found != run_.end()) return found->second;
  const auto name = stem_of(path);
  if (is_module && openings_->must_open_module(name)) return Need::always;
  // A package may import the module that bears its own name by that name: cv2/cv2.abi3.so.
  const bool bears_name = base_name(folder_of(path)) == name;
  // Others are opened by torch.ops.load_library, which takes modules too.
  if (is_module)
    return (bears_name && openings_->mentions(name)) || openings_->must_open(name, true)
               ? Need::depends
               : Need::never;
  if (openings_->must_open_by_name(name)) return Need::always;
  // Executed code has its name, or makes up names of libraries at run time.
  return openings_->mentions(name) || openings_->must_open(name, false) ? Need::depends
                                                                        : Need::never;
}

}  // namespace wheelscope
