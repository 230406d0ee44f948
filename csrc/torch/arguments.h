// The one check of what the ops are given: dtypes, devices, shapes, the scalar's kind.
#pragma once

#include "../kernels/element.h"
#include "../kernels/layout.h"
#include "stable_abi.h"

namespace cuda_ext {

// The dtype of the op's operands; throws where there is none that the op supports. `b` is null for
// one operand.
DType checked_dtype(const char* op, const Tensor& a, const Tensor* b);

// Throws where adding `value` to a tensor of `dtype` would change the tensor's dtype.
void check_scalar(const char* op, DType dtype, const Scalar& value);

// Throws where the operands do not broadcast.
Layout checked_layout(const char* op, const Tensor& a, const Tensor* b);

}  // namespace cuda_ext
