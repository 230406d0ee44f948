// A set of packages as a lock file (PEP 751), which pip and uv install.
#pragma once

#include <string>

#include "answers/fit_set.h"
#include "facts/machine.h"

namespace wheelscope {

// An error: a file's hash is not known, or it is not on a web server.
Result<std::string> pylock_text(const SetAnswer& answer, const PythonFacts& python,
                                const std::string& architecture);

}  // namespace wheelscope
