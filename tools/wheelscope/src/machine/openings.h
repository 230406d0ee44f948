// Which libraries an import opens by functions of Python, from the files that it runs.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "machine/python_source.h"

namespace wheelscope {

class Openings {
 public:
  // The sources of one package, and the names of its libraries without what follows the first dot.
  Openings(const std::vector<const PythonSource*>& sources, const std::set<std::string>& libraries);

  // Whether the import opens that library, and fails if it does not load. Of libraries whose names
  // are made up one may stand in for another: `another_loads`.
  bool must_open(const std::string& library, bool another_loads) const {
    return named_.contains(library) ? opened_.contains(library) : opens_unnamed_ && !another_loads;
  }
  // The same of a library that nothing but its name tells of: code that is run must have the name.
  bool must_open_by_name(const std::string& library) const {
    return opened_.contains(library) || (opens_unnamed_ && mentioned_.contains(library));
  }
  // Whether code that is run has the name, for whatever purpose.
  bool mentions(const std::string& name) const { return mentioned_.contains(name); }
  // Libraries of other places that the import opens, by names that the code has.
  const std::set<std::string>& libraries_elsewhere() const { return elsewhere_; }
  // The same of a module, which is imported as a rule: it is opened only by the name of its file.
  bool must_open_module(const std::string& module) const {
    return opened_.contains(module + ".so");
  }

 private:
  std::set<std::string> named_, opened_, mentioned_, elsewhere_;
  bool opens_unnamed_ = false;  // by names that are put together at run time
};

}  // namespace wheelscope
