// running_max on the CPU. Without this file the op would have only a CUDA kernel.
#include "opwright/kernel.h"

template <typename T>
void running_max_on_cpu(const T* x, T* out, int64_t rows, int64_t columns) {
  for (int64_t row = 0; row < rows; ++row, x += columns, out += columns) {
    for (int64_t i = 0; i < columns; ++i) {
      const bool is_largest = i == 0 || x[i] > out[i - 1] || x[i] != x[i];  // NaN stays
      out[i] = is_largest ? x[i] : out[i - 1];
    }
  }
}

OPWRIGHT_KERNEL(running_max_on_cpu<float>, "running_max(Tensor x) -> Tensor")
OPWRIGHT_KERNEL(running_max_on_cpu<double>, "running_max(Tensor x) -> Tensor")
