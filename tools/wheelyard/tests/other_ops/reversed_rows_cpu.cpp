// reversed_rows on the CPU.
#include <algorithm>

#include "opwright/kernel.h"

void reversed_rows_on_cpu(const float* x, float* out, int64_t rows, int64_t columns) {
  for (int64_t row = 0; row < rows; ++row, x += columns, out += columns) {
    std::reverse_copy(x, x + columns, out);
  }
}

OPWRIGHT_KERNEL(reversed_rows_on_cpu, "reversed_rows(Tensor x) -> Tensor")
