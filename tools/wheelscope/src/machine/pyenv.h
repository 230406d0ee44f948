// pyenv's shims: scripts named python3 that start the interpreter which the folder, the environment
// or the user chose.
#pragma once

#include <string>

#include "source/bytes.h"

namespace wheelscope {

bool is_pyenv_shim(const std::string& file);

// The interpreter that the shim would start here and now.
Result<std::string> interpreter_behind_shim(const std::string& shim);

}  // namespace wheelscope
