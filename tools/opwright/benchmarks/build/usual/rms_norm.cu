// rms_norm: each row divided by the root of its mean square, times a weight; and its backward.
#include <ATen/OpMathType.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/extension.h>

#include <cub/block/block_reduce.cuh>

#include "ops.h"

constexpr int threads = 256;

template <typename number_t>
__device__ number_t sum_over_block(number_t value) {
  using Reduce = cub::BlockReduce<number_t, threads>;
  __shared__ typename Reduce::TempStorage storage;
  __shared__ number_t sum;
  value = Reduce(storage).Sum(value);
  if (threadIdx.x == 0) sum = value;
  __syncthreads();
  return sum;
}

template <typename scalar_t, typename number_t>
__global__ void rms_norm_kernel(const scalar_t* x, const scalar_t* weight, number_t eps,
                                int64_t size, scalar_t* out, number_t* rstd) {
  x += blockIdx.x * size;
  out += blockIdx.x * size;
  number_t sum = 0;
  for (int64_t i = threadIdx.x; i < size; i += threads) {
    const auto number = static_cast<number_t>(x[i]);
    sum += number * number;
  }
  const number_t scale = rsqrt(sum_over_block(sum) / size + eps);
  if (threadIdx.x == 0) rstd[blockIdx.x] = scale;
  for (int64_t i = threadIdx.x; i < size; i += threads)
    out[i] = static_cast<scalar_t>(static_cast<number_t>(x[i]) * scale *
                                   static_cast<number_t>(weight[i]));
}

template <typename scalar_t, typename number_t>
__global__ void rms_norm_backward_kernel(const scalar_t* grad, const scalar_t* x,
                                         const scalar_t* weight, const number_t* rstd, int64_t size,
                                         scalar_t* grad_x) {
  grad += blockIdx.x * size;
  x += blockIdx.x * size;
  grad_x += blockIdx.x * size;
  const number_t scale = rstd[blockIdx.x];
  number_t sum = 0;
  for (int64_t i = threadIdx.x; i < size; i += threads)
    sum += static_cast<number_t>(grad[i]) * static_cast<number_t>(weight[i]) *
           static_cast<number_t>(x[i]);
  const number_t correction = sum_over_block(sum) / size * scale * scale * scale;
  for (int64_t i = threadIdx.x; i < size; i += threads)
    grad_x[i] = static_cast<scalar_t>(static_cast<number_t>(grad[i]) *
                                          static_cast<number_t>(weight[i]) * scale -
                                      static_cast<number_t>(x[i]) * correction);
}

std::tuple<torch::Tensor, torch::Tensor> rms_norm_cuda(const torch::Tensor& x,
                                                       const torch::Tensor& weight, double eps) {
  const at::cuda::CUDAGuard guard(x.device());
  const auto input = x.contiguous(), factors = weight.contiguous();
  const int64_t size = input.size(-1), rows = input.numel() / size;
  auto out = torch::empty_like(input);
  auto rstd = torch::empty({rows}, input.options().dtype(at::toOpMathType(input.scalar_type())));
  AT_DISPATCH_FLOATING_TYPES_AND2(
      at::ScalarType::Half, at::ScalarType::BFloat16, input.scalar_type(), "rms_norm", [&] {
        using number_t = at::opmath_type<scalar_t>;
        rms_norm_kernel<scalar_t, number_t><<<rows, threads, 0, at::cuda::getCurrentCUDAStream()>>>(
            input.const_data_ptr<scalar_t>(), factors.const_data_ptr<scalar_t>(),
            static_cast<number_t>(eps), size, out.mutable_data_ptr<scalar_t>(),
            rstd.mutable_data_ptr<number_t>());
      });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {out, rstd};
}

std::tuple<torch::Tensor, torch::Tensor> rms_norm_backward_cuda(const torch::Tensor& grad,
                                                                const torch::Tensor& x,
                                                                const torch::Tensor& weight,
                                                                const torch::Tensor& rstd) {
  const at::cuda::CUDAGuard guard(x.device());
  const auto from = grad.contiguous(), input = x.contiguous(), factors = weight.contiguous();
  const int64_t size = input.size(-1), rows = input.numel() / size;
  auto grad_x = torch::empty_like(input);
  AT_DISPATCH_FLOATING_TYPES_AND2(
      at::ScalarType::Half, at::ScalarType::BFloat16, input.scalar_type(), "rms_norm_backward",
      [&] {
        using number_t = at::opmath_type<scalar_t>;
        rms_norm_backward_kernel<scalar_t, number_t>
            <<<rows, threads, 0, at::cuda::getCurrentCUDAStream()>>>(
                from.const_data_ptr<scalar_t>(), input.const_data_ptr<scalar_t>(),
                factors.const_data_ptr<scalar_t>(), rstd.const_data_ptr<number_t>(), size,
                grad_x.mutable_data_ptr<scalar_t>());
      });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {grad_x, rms_norm_weight_gradient(from, input, rstd)};
}
