// running_sum on the CPU. Without this file the op would have a kernel for CUDA alone.
#include "opwright/kernel.h"

template <typename T>
void running_sum_on_cpu(const T* x, T* out, int64_t rows, int64_t columns) {
  for (int64_t row = 0; row < rows; ++row) {
    T sum = 0;
    for (int64_t i = row * columns; i < (row + 1) * columns; ++i) out[i] = sum += x[i];
  }
}

OPWRIGHT_KERNEL(running_sum_on_cpu<float>, "running_sum(Tensor x) -> Tensor")
OPWRIGHT_KERNEL(running_sum_on_cpu<double>, "running_sum(Tensor x) -> Tensor")
