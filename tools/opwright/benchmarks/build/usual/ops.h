// The usual way's CUDA functions, one source each, and what they share.
#pragma once

#include <torch/extension.h>

#include <tuple>
#include <utility>

torch::Tensor my_add_cuda(const torch::Tensor& a, const torch::Tensor& b);
torch::Tensor my_fast_add_cuda(const torch::Tensor& a, const torch::Tensor& b);
torch::Tensor cust_add_cuda(const torch::Tensor& x, const at::Scalar& value);
std::tuple<torch::Tensor, torch::Tensor> rms_norm_cuda(const torch::Tensor& x,
                                                       const torch::Tensor& weight, double eps);
std::tuple<torch::Tensor, torch::Tensor> rms_norm_backward_cuda(const torch::Tensor& grad,
                                                                const torch::Tensor& x,
                                                                const torch::Tensor& weight,
                                                                const torch::Tensor& rstd);

// Both inputs broadcast to one shape, contiguous.
inline std::pair<torch::Tensor, torch::Tensor> same_shape(const torch::Tensor& a,
                                                          const torch::Tensor& b) {
  TORCH_CHECK(a.scalar_type() == b.scalar_type(), "dtypes differ");
  TORCH_CHECK(a.device() == b.device(), "devices differ");
  const auto shapes = torch::broadcast_tensors({a, b});
  return {shapes[0].contiguous(), shapes[1].contiguous()};
}

// The sum of grad * x * rstd over the rows, in the numbers' own precision.
inline torch::Tensor rms_norm_weight_gradient(const torch::Tensor& grad, const torch::Tensor& x,
                                              const torch::Tensor& rstd) {
  const auto rows = [&](const torch::Tensor& t) {
    return t.reshape({-1, x.size(-1)}).to(rstd.scalar_type());
  };
  return (rows(grad) * rows(x) * rstd.unsqueeze(-1)).sum(0).to(x.scalar_type());
}
