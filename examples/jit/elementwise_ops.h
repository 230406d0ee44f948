// The ops that are loaded. CMake writes this file for the package's own build, from every header in
// csrc.
#pragma once

#include "add.h"

namespace opwright {
using ElementwiseOps = OpList<my_fast_add, my_add>;
}  // namespace opwright
