// silu_mul's gradients on CUDA, both in one pass: three reads and two writes per element.
#include "opwright/kernel.h"
#include "opwright/rows.cuh"
#include "silu_mul.h"

namespace opwright {
namespace {

// 16 bytes of each tensor per thread, at once where `whole`: every tensor starts at such an
// address.
template <typename T>
__global__ void __launch_bounds__(threads_per_block)
    silu_mul_backward_kernel(const T* grad, const T* x, const T* y, T* grad_x, T* grad_y, int64_t n,
                             bool whole) {
  using C = Compute<T>;
  constexpr int size = Vector<T>::size;
  const SiluMul<C> function;
  const int64_t first = thread_index() * size;
  if (whole && first + size <= n) {
    const auto vector = [&](const T* from) {
      return *reinterpret_cast<const uint4*>(from + first);
    };
    const uint4 in[] = {vector(grad), vector(x), vector(y)};
    C numbers[3][size], grads[2][size];
#pragma unroll
    for (int i = 0; i < 3; ++i) unpack<T>(in[i], numbers[i]);
#pragma unroll
    for (int e = 0; e < size; ++e)
      function.gradients(numbers[0][e], numbers[1][e], numbers[2][e], grads[0][e], grads[1][e]);
    *reinterpret_cast<uint4*>(grad_x + first) = pack<T, uint4>(grads[0]);
    *reinterpret_cast<uint4*>(grad_y + first) = pack<T, uint4>(grads[1]);
    return;
  }
#pragma unroll 1
  for (int64_t i = first; i < n && i < first + size; ++i) {
    C grads[2];
    function.gradients(load(grad[i]), load(x[i]), load(y[i]), grads[0], grads[1]);
    grad_x[i] = store<T>(grads[0]);
    grad_y[i] = store<T>(grads[1]);
  }
}

template <typename T>
cudaError_t silu_mul_backward(const T* grad, const T* x, const T* y, T* grad_x, T* grad_y,
                              int64_t n, Stream stream) {
  bool whole = true;
  for (const void* pointer :
       {static_cast<const void*>(grad), static_cast<const void*>(x), static_cast<const void*>(y)})
    whole &= is_aligned(pointer);
  return launch<silu_mul_backward_kernel<T>>(grid_of(divide_up(n, Vector<T>::size)), stream, grad,
                                             x, y, grad_x, grad_y, n, whole);
}

}  // namespace

OPWRIGHT_KERNEL(silu_mul_backward<float>, silu_mul_backward_schema)
OPWRIGHT_KERNEL(silu_mul_backward<double>, silu_mul_backward_schema)
OPWRIGHT_KERNEL(silu_mul_backward<Half>, silu_mul_backward_schema)
OPWRIGHT_KERNEL(silu_mul_backward<BFloat16>, silu_mul_backward_schema)

}  // namespace opwright
