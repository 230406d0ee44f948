// Tells what `import NAME` runs in an environment by following the import statements of its files.
// Modules in machine code import others too; their texts do not tell whether they do so at once.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "facts/machine.h"
#include "machine/distributions.h"
#include "machine/python_source.h"

namespace wheelscope {

// True if this Python would import a module of that file name: x.cpython-311-..., x.abi3.so, x.so
bool is_module_for(const PythonFacts& python, const std::string& path);

// The names that a distribution is imported by: cupy, cupyx; cuda.bindings where `cuda` is a folder
// without code, which several distributions share.
std::vector<std::string> import_names(const std::vector<std::string>& files);
std::vector<std::string> import_names(const Distribution& distribution);

// The files that modules are found in: those of the disk, or of a wheel.
struct SourceTree {
  std::function<std::set<std::string>(const std::string& folder)> files_in;
  std::function<std::optional<std::string>(const std::string& path)> read;
  // Modules that a file of machine code may import; an empty function: none.
  std::function<std::set<std::string>(const std::string& path)> named_in = {};
  // Whether Python has a module of that name itself, which comes first; an empty function: no.
  std::function<bool(const std::string& name)> is_standard = {};
};
SourceTree tree_of_disk();

// The modules below these packages that machine code names.
std::set<std::string> modules_named_in(std::string_view machine_code,
                                       const std::set<std::string>& packages);

// A text of machine code that is the name of a module in the package `a.b.`. Empty: none.
std::string module_in_texts(std::string_view texts, const std::string& package);

// A package that machine code names modules of, and says of it that some versions do not fit: `lxml
// & xmlsec library version mismatch`. Empty: none.
std::string compared_in_texts(std::string_view texts, const std::string& own);

class Imports {
 public:
  explicit Imports(const PythonFacts& python, SourceTree tree = tree_of_disk())
      : python_(python),
        tree_(std::move(tree)),
        target_(target_of(python.version, python.architecture)) {}

  // Adds a file that is missing, or that this Python skips: if nothing else has its name, an import
  // that leads there fails.
  void add_lost(const std::string& path);

  // A module that a file of machine code imports, or may import.
  void add_import(const std::string& path, const std::string& name, Need need = Need::always) {
    native_imports_[path].push_back({.module = name, .need = need});
  }

  // The files of the modules below these names that an import of them runs, and whether it fails
  // with them. What a file is read for the first time decides how much of it is known.
  std::map<std::string, Need> files_run_by(const std::vector<std::string>& names,
                                           PythonReading reading = PythonReading::all) {
    return walk(names, true, reading);
  }

  // Returns the same for files in any package.
  std::map<std::string, Need> reached(const std::vector<std::string>& names) {
    return walk(names, false, PythonReading::openings);
  }

  // The same, with those that are only tried: code goes on where such an import fails.
  std::map<std::string, Need> reached_or_tried(const std::vector<std::string>& names) {
    return walk(names, false, PythonReading::openings, true);
  }

  PythonSource read(std::string_view text) const { return read_python_source(text, target_); }

  // What was read of a file that was run.
  const PythonSource& source_of(const std::string& path) { return modules_[by_path_[path]].source; }
  std::optional<std::string> text_of(const std::string& path) const { return tree_.read(path); }

  // The first module that a file's statement names in a package, and that is not there. A package
  // is known by its __init__.py: modules in machine code may bring others. Empty: none.
  std::string absent_from_package(const std::string& path, const ImportStatement& statement);

  // The first name that a file takes from cffi's `lib` and that no machine code among the files
  // has, though some was made by cffi. Empty: none.
  const std::string& absent_from_cffi(const std::string& path,
                                      const std::map<std::string, Need>& files);

 private:
  using Edges = std::vector<std::pair<std::size_t, Need>>;
  struct Module {
    std::string name, path;  // no path: a folder without __init__.py
    bool is_package = false, is_read = false;
    PythonSource source;
    Edges imports, tried;
  };
  static constexpr std::size_t none = ~std::size_t{0};

  std::string module_named(std::size_t index, const ImportStatement& statement) const;
  std::size_t find(const std::string& name);
  std::size_t locate(const std::string& name);
  const std::set<std::string>& files_in(const std::string& folder);
  void add_with_parents(const std::string& name, Need need, Edges& found);
  std::map<std::string, Need> walk(const std::vector<std::string>& names, bool below,
                                   PythonReading reading, bool with_tried = false);
  void read(const std::vector<std::size_t>& modules, PythonReading reading);
  Edges edges_of(std::size_t index, const std::vector<ImportStatement>& statements);
  void link(std::size_t index, PythonSource source);

  const PythonFacts& python_;
  SourceTree tree_;
  PythonTarget target_;
  std::vector<Module> modules_;
  std::unordered_map<std::string, std::size_t> by_name_, by_path_;
  std::unordered_map<std::string, std::set<std::string>> folders_, lost_;
  std::unordered_map<std::string, std::vector<ImportStatement>> native_imports_;
  std::unordered_map<std::string, std::string> absent_from_cffi_;  // by file
};

class ModulesHere {
 public:
  explicit ModulesHere(const PythonFacts& python);

  // Python looks in places that are not known here.
  bool is_open() const { return is_open_; }

  // Whether a file of the standard library has that name.
  bool is_standard(const std::string& name);

  // Whether a folder of packages has a file or a folder of that name.
  bool is_installed(const std::string& module);

  // False: surely not. Names of two parts are asked of packages without code of their own, such as
  // `google`.
  bool may_have(const std::string& name);

  // Returns whether a module may have a name in it; false only if one of the standard library
  // surely does not.
  bool may_have(const std::string& module, const std::string& name);

 private:
  bool find(const std::string& name);
  bool has_module(const std::string& folder, const std::string& name);
  bool is_in_interpreter(const std::string& name) const;

  const PythonFacts& python_;
  std::vector<std::string> standard_;  // folders of the standard library
  bool is_open_;
  std::map<std::string, bool> known_;
  std::map<std::string, std::set<std::string>> folders_;               // what has a name in each
  std::map<std::string, std::optional<std::set<std::string>>> names_;  // in each module
};

}  // namespace wheelscope
