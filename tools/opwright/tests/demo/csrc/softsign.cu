// softsign: x / (1 + |x|), by a kernel and a launch function that know nothing of torch.
#include "softsign.h"

#include "opwright/launch.cuh"

namespace opwright {

template <typename T>
__global__ void softsign_kernel(const T* x, T* out, int64_t n) {
  const int64_t i = thread_index();
  if (i < n) out[i] = x[i] / (1 + fabs(x[i]));
}

cudaError_t softsign(const float* x, float* out, int64_t n, Stream stream) {
  return launch<softsign_kernel<float>>(grid_of(n), stream, x, out, n);
}

}  // namespace opwright
