// The kernel. CUDAContext.h brings in cuBLAS, cuSPARSE and cuSOLVER headers, as in most extensions.
#include <ATen/cuda/CUDAContext.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>

#include "scale_rows.h"

namespace {

__global__ void scale_rows_kernel(const float* from, const float* scale, float* to, int64_t count,
                                  int64_t columns) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) to[i] = from[i] * scale[i / columns];
}

}  // namespace

at::Tensor scale_rows_cuda(const at::Tensor& matrix, const at::Tensor& factors) {
  const c10::cuda::CUDAGuard guard(matrix.device());
  at::Tensor result = at::empty_like(matrix);
  const int64_t count = matrix.numel();
  if (count == 0) return result;
  constexpr int threads = 256;
  const int64_t blocks = (count + threads - 1) / threads;
  scale_rows_kernel<<<blocks, threads, 0, at::cuda::getCurrentCUDAStream()>>>(
      matrix.const_data_ptr<float>(), factors.const_data_ptr<float>(),
      result.mutable_data_ptr<float>(), count, matrix.size(1));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return result;
}
