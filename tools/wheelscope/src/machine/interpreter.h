// A Python interpreter and its environment, from files: no Python is started.
#pragma once

#include "facts/machine.h"
#include "source/bytes.h"

namespace wheelscope {

// The interpreter's file that the user means: a path, a name on PATH, or the folder of an
// environment. Empty: the active virtual environment, else python3 on PATH; and if there is
// neither, the answer is empty too. A shim of pyenv is followed to the interpreter that it would
// start.
Result<std::string> find_interpreter(const std::string& given);

struct Interpreter {
  PythonFacts facts;
  std::string loader;  // the dynamic loader that it asks for
};

// What the interpreter's files say; tags are left to whoever knows the C library. Fails on what is
// no CPython 3.
Result<Interpreter> read_interpreter(const std::string& executable);

}  // namespace wheelscope
