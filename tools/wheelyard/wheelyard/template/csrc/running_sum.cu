// running_sum: the sums along each row, by a kernel of our own: one thread per row.
#include "opwright/kernel.h"

template <typename T>
__global__ void running_sum_kernel(const T* x, T* out, int64_t rows, int64_t columns) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  T sum = 0;
  for (int64_t i = row * columns; i < (row + 1) * columns; ++i) out[i] = sum += x[i];
}

template <typename T>
void running_sum(const T* x, T* out, int64_t rows, int64_t columns, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>((rows + 127) / 128);
  running_sum_kernel<<<blocks, 128, 0, stream>>>(x, out, rows, columns);
}

OPWRIGHT_KERNEL(running_sum<float>, "running_sum(Tensor x) -> Tensor")
OPWRIGHT_KERNEL(running_sum<double>, "running_sum(Tensor x) -> Tensor")
