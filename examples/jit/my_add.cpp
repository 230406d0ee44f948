// The binding of the JIT example: one op, on the CPU and on CUDA, for contiguous tensors of one
// shape.
#include <torch/csrc/stable/accelerator.h>

#include "kernels/add.h"
#include "torch/output.h"

namespace cuda_ext {
namespace {

void check_inputs(const Tensor& a, const Tensor& b) {
  if (!has_plain_strides(a) || !is_laid_out_as(a, b))
    fail("jit my_add: takes contiguous tensors of one shape");
}

NewTensor my_add_cpu(const Tensor& a, const Tensor& b) {
  const DType dtype = checked_dtype("jit my_add", a, &b);
  check_inputs(a, b);
  NewTensor out(a, a.dims, a.sizes, a.strides);
  cpu::add(dtype, a.data(), b.data(), out.data(), 0, element_count(a));
  return out;
}

#if defined(CUDA_EXT_WITH_CUDA)
NewTensor my_add_cuda(const Tensor& a, const Tensor& b) {
  const DType dtype = checked_dtype("jit my_add", a, &b);
  check_inputs(a, b);
  const torch::stable::accelerator::DeviceGuard guard(a.device_index);
  NewTensor out(a, a.dims, a.sizes, a.strides);
  if (!aoti_torch_get_current_cuda_stream) fail("jit my_add: linked without libtorch_cuda");
  void* stream = nullptr;
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_cuda_stream(a.device_index, &stream));
  const cudaError_t error = add(dtype, a.data(), b.data(), out.data(), element_count(a),
                                {static_cast<cudaStream_t>(stream), a.device_index});
  if (error != cudaSuccess) fail("jit my_add: ", cudaGetErrorString(error));
  return out;
}
#endif

}  // namespace
}  // namespace cuda_ext

STABLE_TORCH_LIBRARY(cuda_ext_jit, m) {
  m.def("my_add(Tensor a, Tensor b) -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(cuda_ext_jit, CPU, m) {
  m.impl("my_add", cuda_ext::boxed<&cuda_ext::my_add_cpu>);
}

#if defined(CUDA_EXT_WITH_CUDA)
STABLE_TORCH_LIBRARY_IMPL(cuda_ext_jit, CUDA, m) {
  m.impl("my_add", cuda_ext::boxed<&cuda_ext::my_add_cuda>);
}
#endif
