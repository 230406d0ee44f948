// softsign: x / (1 + |x|), with its own kernel, for float32 and float64.
#include "opwright/kernel.h"

template <typename T>
__global__ void softsign_kernel(const T* x, T* out, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] / (1 + fabs(x[i]));
}

template <typename T>
void softsign(const T* x, T* out, int64_t n, cudaStream_t stream) {
  softsign_kernel<<<static_cast<unsigned>((n + 255) / 256), 256, 0, stream>>>(x, out, n);
}

OPWRIGHT_KERNEL(softsign<float>, "softsign(Tensor x) -> Tensor")
OPWRIGHT_KERNEL(softsign<double>, "softsign(Tensor x) -> Tensor")
