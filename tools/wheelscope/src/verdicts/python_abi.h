// Which Pythons a wheel's extension modules load in, from the symbols they need and their file
// names.
#pragma once

#include "verdicts/verdicts.h"

namespace wheelscope {

// `wheel` names the Python of modules that do not name it themselves.
PythonVerdict judge_python(const std::vector<LibraryFacts>& libraries,
                           const std::optional<WheelClaims>& wheel);

// Whether modules load in this build of Python (3.13, 3.14t), or why they do not.
enum class PythonServes { yes, is_older, is_another, not_said };

PythonServes serves_python(const PythonVerdict& verdict, const std::string& python);

}  // namespace wheelscope
