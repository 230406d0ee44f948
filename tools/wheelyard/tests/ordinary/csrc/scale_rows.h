// Scales each row of a matrix by its own factor: what the binding and the kernel agree on.
#pragma once
#include <ATen/core/Tensor.h>

at::Tensor scale_rows_cuda(const at::Tensor& matrix, const at::Tensor& factors);
