// The ops that the standalone program checks when one nvcc line builds it. CMake writes this file
// for the package's own build, from every file in csrc/ops.
#pragma once

#include "ops/add.h"
#include "ops/cust_add.h"

namespace cuda_ext {
template <typename... Op>
struct OpList {};
using ElementwiseOps = OpList<my_fast_add, my_add, cust_add_int, cust_add_float, cust_add_complex>;
}  // namespace cuda_ext
