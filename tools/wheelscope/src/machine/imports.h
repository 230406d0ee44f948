// What `import NAME` runs in an environment, found by following the import statements of its files.
// What modules in machine code import is not known: their texts have names of modules, but not
// whether these are imported at once or in a function.
#pragma once

#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "facts/machine.h"
#include "machine/distributions.h"
#include "machine/python_source.h"

namespace wheelscope {

// Whether this Python would import a module of that file name: x.cpython-311-..., x.abi3.so, x.so
bool is_module_for(const PythonFacts& python, const std::string& path);

// The names that a distribution is imported by: cupy, cupyx; cuda.bindings where `cuda` is a folder
// that several distributions share.
std::vector<std::string> import_names(const Distribution& distribution);

class Imports {
 public:
  explicit Imports(const PythonFacts& python) : python_(python) {}

  // The files of the modules below these names that an import of them runs, or fails.
  std::set<std::string> files_run_by(const std::vector<std::string>& names);

  // Whether an import of one of these names runs that file, in whatever package it lies. To be
  // asked after the other, which reads more of a file.
  bool runs(const std::vector<std::string>& names, const std::string& file);

  // What was read of a file that was run below a name.
  const PythonSource& source_of(const std::string& path) { return modules_[by_path_[path]].source; }

 private:
  struct Module {
    std::string name, path;  // no path: a folder without __init__.py
    bool is_package = false, is_read = false;
    PythonSource source;
    std::vector<std::size_t> imports;
  };
  static constexpr std::size_t none = ~std::size_t{0};

  std::size_t find(const std::string& name);
  std::size_t locate(const std::string& name);
  const std::set<std::string>& files_in(const std::string& folder);
  void add_with_parents(const std::string& name, std::vector<std::size_t>& found);
  void read(const std::vector<std::size_t>& modules, PythonReading reading);
  void link(std::size_t index, PythonSource source);
  std::vector<std::size_t> next_level(const std::vector<std::size_t>& level) const;

  const PythonFacts& python_;
  std::vector<Module> modules_;
  std::unordered_map<std::string, std::size_t> by_name_, by_path_;
  std::unordered_map<std::string, std::set<std::string>> folders_;
  std::unordered_map<std::string, std::vector<bool>> not_leading_;  // to a file: modules
};

}  // namespace wheelscope
