// reversed_rows: each row from its end to its start, one thread per element.
#include "opwright/kernel.h"

__global__ void reversed_rows_kernel(const float* x, float* out, int64_t rows, int64_t columns) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= rows * columns) return;
  const int64_t row = i / columns;
  out[i] = x[row * columns + (columns - 1 - (i - row * columns))];
}

void reversed_rows(const float* x, float* out, int64_t rows, int64_t columns, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>((rows * columns + 255) / 256);
  reversed_rows_kernel<<<blocks, 256, 0, stream>>>(x, out, rows, columns);
}

OPWRIGHT_KERNEL(reversed_rows, "reversed_rows(Tensor x) -> Tensor")
