// Tells from its text what a Python file does when it is imported: the modules that it imports and
// the libraries that it opens, and whether it goes on if one of these fails.
//
// This reads statements and the blocks that they stand in. Conditions are evaluated where they are
// about the platform or the version of Python; a function's body runs if the file calls the
// function; a handler that does not raise makes its `try` optional.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "machine/python_syntax.h"

namespace wheelscope {

struct ImportStatement {
  std::string module;              // a.b of `import a.b` and of `from a.b import c`
  std::size_t dots = 0;            // before it, or alone: from ..a import c, from . import c
  std::vector<std::string> names;  // taken from it; any of them may be a module
  Need need = Need::always;        // for the import of the file to succeed
  Need need_if_absent = need;      // the same, where the module is not found
};

// The body of a function, nested ones included, or what stands outside of all functions.
struct PythonScope {
  struct Call {
    std::string name;
    bool optional = false;  // it may fail
  };
  std::vector<Call> calls;
  std::vector<std::string> texts;  // short ones
  bool opens = false;              // a library: torch.ops.load_library, ctypes.CDLL
  bool opens_optionally = false;
  bool opens_modules = false;  // what it opens are modules, by their paths: exec_module
  bool raises = false, asks_for_cuda = false;  // an error somewhere; torch.version.cuda
};

struct PythonSource {
  std::vector<ImportStatement> imports;       // those that are never needed are left out
  std::vector<ImportStatement> tried;         // outside of functions, and may fail
  std::map<std::string, PythonScope> scopes;  // by the function's name; "" is the file itself
  std::vector<std::string> cffi_names;        // that its own statements take from cffi's `_lib`
  Need refuses = Need::never;  // raises an error itself; under conditions, if it asks sys.modules
  bool describes_operators = false;  // of torch that must be there: register_fake("ns::op")
};

// What to read: everything; only the imports, for which the bodies of functions do not count; or
// everything in files that open libraries, and the imports of others.
enum class PythonReading { all, imports, openings };
PythonSource read_python_source(std::string_view text, const PythonTarget& target = {},
                                PythonReading reading = PythonReading::all);

// The names that a file may give to those who import them from there: all that its code has not
// only behind a dot. Nothing: it may make names up.
std::optional<std::set<std::string>> names_in(std::string_view text);

// --- Which libraries an import opens by functions of Python, from the files that it runs.

class Openings {
 public:
  // The sources of one package, and the names of its libraries without what follows the first dot.
  Openings(const std::vector<const PythonSource*>& sources, const std::set<std::string>& libraries);

  // True if the import opens that library, and fails if it does not load. If library names are made
  // up, one may replace another: `another_loads`.
  bool must_open(const std::string& library, bool another_loads) const {
    return named_.contains(library) ? opened_.contains(library) : opens_unnamed_ && !another_loads;
  }
  // The same for a library that only its name tells of: executed code must have the name.
  bool must_open_by_name(const std::string& library) const {
    return opened_.contains(library) || (opens_unnamed_ && mentioned_.contains(library));
  }
  // True if executed code has the name, for whatever purpose.
  bool mentions(const std::string& name) const { return mentioned_.contains(name); }
  // Returns libraries from other places that the import opens, by names in the code.
  const std::set<std::string>& libraries_elsewhere() const { return elsewhere_; }
  // The same for a module, which is normally imported: it is opened only by the name of its file.
  bool must_open_module(const std::string& module) const {
    return opened_.contains(module + ".so");
  }

 private:
  std::set<std::string> named_, opened_, mentioned_, elsewhere_;
  bool opens_unnamed_ = false;  // by names that are put together at run time
};

}  // namespace wheelscope
