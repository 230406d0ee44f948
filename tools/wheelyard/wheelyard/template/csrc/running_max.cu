// running_max: the largest number so far along each row, with its own kernel: one thread per row.
#include "opwright/kernel.h"

template <typename T>
__global__ void running_max_kernel(const T* x, T* out, int64_t rows, int64_t columns) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= rows || columns == 0) return;
  T largest = x[row * columns];
  for (int64_t i = row * columns; i < (row + 1) * columns; ++i) {
    if (x[i] > largest || x[i] != x[i]) largest = x[i];  // NaN differs from itself, and stays
    out[i] = largest;
  }
}

template <typename T>
void running_max(const T* x, T* out, int64_t rows, int64_t columns, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>((rows + 127) / 128);
  running_max_kernel<<<blocks, 128, 0, stream>>>(x, out, rows, columns);
}

OPWRIGHT_KERNEL(running_max<float>, "running_max(Tensor x) -> Tensor")
OPWRIGHT_KERNEL(running_max<double>, "running_max(Tensor x) -> Tensor")
