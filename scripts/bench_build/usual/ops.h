// The usual way's CUDA functions, one source each, and what they share.
#pragma once

#include <torch/extension.h>

#include <utility>

torch::Tensor my_add_cuda(const torch::Tensor& a, const torch::Tensor& b);
torch::Tensor my_fast_add_cuda(const torch::Tensor& a, const torch::Tensor& b);
torch::Tensor cust_add_cuda(const torch::Tensor& x, const at::Scalar& value);

// Both inputs broadcast to one shape, contiguous.
inline std::pair<torch::Tensor, torch::Tensor> same_shape(const torch::Tensor& a,
                                                          const torch::Tensor& b) {
  TORCH_CHECK(a.scalar_type() == b.scalar_type(), "dtypes differ");
  TORCH_CHECK(a.device() == b.device(), "devices differ");
  const auto shapes = torch::broadcast_tensors({a, b});
  return {shapes[0].contiguous(), shapes[1].contiguous()};
}
