// my_fast_add: out[i] = a[i] + b[i] with 128-bit loads and stores where the pointers allow them.
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/extension.h>

#include "ops.h"

template <typename scalar_t>
struct alignas(16) Vector {
  static constexpr int size = 16 / sizeof(scalar_t);
  scalar_t element[size];
};

template <typename scalar_t>
__global__ void vector_add_kernel(const scalar_t* a, const scalar_t* b, scalar_t* out, int64_t n) {
  constexpr int size = Vector<scalar_t>::size;
  int64_t i = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * size;
  if (i + size <= n) {
    auto x = *reinterpret_cast<const Vector<scalar_t>*>(a + i);
    const auto y = *reinterpret_cast<const Vector<scalar_t>*>(b + i);
#pragma unroll
    for (int e = 0; e < size; ++e) x.element[e] = x.element[e] + y.element[e];
    *reinterpret_cast<Vector<scalar_t>*>(out + i) = x;
  } else {
    for (; i < n; ++i) out[i] = a[i] + b[i];
  }
}

template <typename scalar_t>
__global__ void unaligned_add_kernel(const scalar_t* a, const scalar_t* b, scalar_t* out,
                                     int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] + b[i];
}

static bool is_aligned(const torch::Tensor& tensor) {
  return reinterpret_cast<uintptr_t>(tensor.const_data_ptr()) % 16 == 0;
}

torch::Tensor my_fast_add_cuda(const torch::Tensor& a, const torch::Tensor& b) {
  const at::cuda::CUDAGuard guard(a.device());
  const auto inputs = same_shape(a, b);
  const auto &x = inputs.first, &y = inputs.second;
  auto out = torch::empty_like(x);
  const int64_t n = out.numel();
  if (n == 0) return out;
  const int threads = 256;
  const bool aligned = is_aligned(x) && is_aligned(y) && is_aligned(out);
  AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND2(
      at::ScalarType::Half, at::ScalarType::BFloat16, x.scalar_type(), "my_fast_add", [&] {
        const auto* from_a = x.const_data_ptr<scalar_t>();
        const auto* from_b = y.const_data_ptr<scalar_t>();
        auto* to = out.mutable_data_ptr<scalar_t>();
        const auto stream = at::cuda::getCurrentCUDAStream();
        if (aligned) {
          const int64_t tile = static_cast<int64_t>(threads) * Vector<scalar_t>::size;
          const auto blocks = static_cast<unsigned>((n + tile - 1) / tile);
          vector_add_kernel<scalar_t><<<blocks, threads, 0, stream>>>(from_a, from_b, to, n);
        } else {
          const auto blocks = static_cast<unsigned>((n + threads - 1) / threads);
          unaligned_add_kernel<scalar_t><<<blocks, threads, 0, stream>>>(from_a, from_b, to, n);
        }
      });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
