// The binding: checks its arguments, multiplies on the CPU, and hands CUDA tensors to the kernel.
#include <torch/extension.h>

#include "scale_rows.h"

at::Tensor scale_rows(const at::Tensor& matrix, const at::Tensor& factors) {
  TORCH_CHECK(matrix.dim() == 2, "matrix must have two dimensions, it has ", matrix.dim());
  TORCH_CHECK(factors.dim() == 1 && factors.size(0) == matrix.size(0),
              "factors must have one element for each row");
  TORCH_CHECK(matrix.scalar_type() == at::kFloat && factors.scalar_type() == at::kFloat,
              "matrix and factors must be float32");
  TORCH_CHECK(matrix.device() == factors.device(), "matrix and factors must be on one device");
#ifdef WITH_CUDA
  if (matrix.is_cuda()) return scale_rows_cuda(matrix.contiguous(), factors.contiguous());
#endif
  TORCH_CHECK(matrix.is_cpu(), "this build serves the CPU alone");
  at::Tensor source = matrix.contiguous(), scales = factors.contiguous();
  at::Tensor result = at::empty_like(source);
  const float* from = source.const_data_ptr<float>();
  const float* scale = scales.const_data_ptr<float>();
  float* to = result.mutable_data_ptr<float>();
  const int64_t columns = source.size(1);
  for (int64_t i = 0; i < source.numel(); ++i) to[i] = from[i] * scale[i / columns];
  return result;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("scale_rows", &scale_rows, "Each row of the matrix times its factor.");
}
