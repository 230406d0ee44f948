// my_add: out[i] = a[i] + b[i], one element per thread.
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/extension.h>

#include "ops.h"

template <typename scalar_t>
__global__ void my_add_kernel(const scalar_t* a, const scalar_t* b, scalar_t* out, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] + b[i];
}

torch::Tensor my_add_cuda(const torch::Tensor& a, const torch::Tensor& b) {
  const at::cuda::CUDAGuard guard(a.device());
  const auto inputs = same_shape(a, b);
  const auto &x = inputs.first, &y = inputs.second;
  auto out = torch::empty_like(x);
  const int64_t n = out.numel();
  if (n == 0) return out;
  const int threads = 256;
  const auto blocks = static_cast<unsigned>((n + threads - 1) / threads);
  AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND2(
      at::ScalarType::Half, at::ScalarType::BFloat16, x.scalar_type(), "my_add", [&] {
        my_add_kernel<scalar_t><<<blocks, threads, 0, at::cuda::getCurrentCUDAStream()>>>(
            x.const_data_ptr<scalar_t>(), y.const_data_ptr<scalar_t>(),
            out.mutable_data_ptr<scalar_t>(), n);
      });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
