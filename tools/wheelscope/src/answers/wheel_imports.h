// Tells what an import of a wheel's packages runs, from the Python files inside it: `fit` asks this
// about libraries that would not load.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "answers/reason.h"
#include "facts/machine.h"
#include "machine/imports.h"
#include "machine/python_source.h"

namespace wheelscope {

// The files of a wheel as they will be installed, and how one is read; it may have to be fetched.
struct WheelFiles {
  std::vector<std::string> names;
  std::function<std::optional<std::string>(const std::string& name)> read;
};

// The files of an installed distribution.
WheelFiles installed_files(const Distribution& distribution);

// True if files of these names have a module; `google.utils` is google/utils.
bool has_module(const std::vector<std::string>& names, std::string module);

// Why an import of a package fails by itself: one of its files raises an error, or imports or opens
// something that is missing everywhere.
struct Refusal {
  Reason reason;            // none: it does not fail
  Need need = Need::never;  // with a reason: it is not about the package of the wheel's name
};

// Modules and libraries that are not the wheel's own. Empty functions: nobody looks, and no file is
// read but the first of each package.
struct OtherModules {
  // `utils`, or `google.utils` where `google` has no code.
  std::function<bool(const std::string& module)> may_be_there = {};
  std::function<bool(const std::string& module, const std::string& name)> may_have = {};
  std::function<bool(const std::string& library)> may_open = {};
  // The required wheels that are wanted, by the names of their files.
  using IsWanted = std::function<bool(const std::vector<std::string>& names)>;
  std::function<std::vector<WheelFiles>(const IsWanted& is_wanted)> required = {};
  // Those of the environment that the files are in: imports are followed into other packages. Null:
  // the wheel's own alone.
  Imports* imports = nullptr;
  // What a statement imports from another distribution that does not have it.
  std::function<Refusal(const ImportStatement& statement)> lacking = {};
};

Refusal refusal_in(const WheelFiles& files, const PythonFacts& python,
                   const OtherModules& others = {});

class WheelImports {
 public:
  WheelImports(const PythonFacts& python, const WheelFiles& files);

  // Tells whether an import fails if this file of the wheel does not load.
  Need need_of(const std::string& path, bool is_module) const;

  // Tells whether an import of the wheel's packages imports this file.
  Need imported(const std::string& path) const;

  // True if an import runs the source beside a module in machine code.
  bool runs_source_of(const std::string& path) const;

  // A file that is run and refuses torch by its CUDA version; empty: none.
  const std::string& asks_for_cuda() const { return asks_for_cuda_; }

 private:
  std::map<std::string, Need> run_;
  std::unique_ptr<Openings> openings_;
  std::string asks_for_cuda_;
};

}  // namespace wheelscope
