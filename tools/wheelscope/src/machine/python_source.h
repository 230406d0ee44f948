// What a Python file does when it is imported, as far as its text tells: the modules that it
// imports and the libraries that it opens, and whether it goes on where one of these fails.
//
// This is a reader of lines and blocks, no parser of Python: a statement counts by the blocks that
// it stands in. A function's body does not run, a handler that does not raise makes its `try`
// optional, and a condition that is not known makes its branches optional.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace wheelscope {

struct ImportStatement {
  std::string module;              // a.b of `import a.b` and of `from a.b import c`
  std::size_t dots = 0;            // before it, or alone: from ..a import c, from . import c
  std::vector<std::string> names;  // that are taken from it; any of them may be a module
  bool optional = false;           // the import of the file does not fail with it
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
};

struct PythonSource {
  std::vector<ImportStatement> imports;
  std::map<std::string, PythonScope> scopes;  // by the function's name; "" is the file itself
  bool describes_operators = false;  // of torch that must be there: register_fake("ns::op")
};

// All of that, or the imports alone, for which the bodies of functions do not count.
enum class PythonReading { all, imports };
PythonSource read_python_source(std::string_view text, PythonReading reading = PythonReading::all);

}  // namespace wheelscope
