// Which Pythons a wheel's extension modules load in, from the symbols they need and their file
// names.
#pragma once

#include "facts.h"

namespace wheelscope {

PythonVerdict judge_python(const std::vector<LibraryFacts>& libraries);

}  // namespace wheelscope
