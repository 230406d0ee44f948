// The ops that the standalone program checks when one nvcc line builds it. CMake writes this file
// for the package's own build, from every header in csrc.
#pragma once

#include "add.h"
#include "cust_add.h"
#include "silu_mul.h"

namespace opwright {
using ElementwiseOps = OpList<my_fast_add, my_add, cust_add_int, cust_add_float, cust_add_complex,
                              silu_mul, _silu_mul_backward>;
}  // namespace opwright
