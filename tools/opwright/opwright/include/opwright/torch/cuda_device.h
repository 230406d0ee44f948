// The CUDA device of an op's tensors and torch's current stream on it, or an error in a build
// without CUDA.
#pragma once

#include <torch/csrc/stable/accelerator.h>

#include <optional>

#include "build_info.h"
#include "stable_abi.h"

#if defined(OPWRIGHT_WITH_CUDA)
#include "opwright/cuda_error.h"
#include "opwright/driver.h"
#include "opwright/stream.h"
#endif

namespace opwright {

#if defined(OPWRIGHT_WITH_CUDA)

// Makes the tensor's device current during this object's lifetime. The device nearly always is
// current already; torch's guard, which allocates, is used only if it is not.
class OnDeviceOf {
 public:
  explicit OnDeviceOf(const Tensor& tensor) {
    const int index = tensor.device_index;
    if (current_device() == index) return;
    guard_.emplace(index);
    // A thread that has not used CUDA yet has no context.
    if (current_device() != index) cudaSetDevice(index);
  }

 private:
  std::optional<torch::stable::accelerator::DeviceGuard> guard_;
};

inline Stream current_stream(OpName op, const Tensor& tensor) {
  if (!aoti_torch_get_current_cuda_stream) fail(op, ": this torch was built without CUDA");
  void* stream = nullptr;
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_cuda_stream(tensor.device_index, &stream));
  return {static_cast<cudaStream_t>(stream), tensor.device_index};
}

inline void check_launch(OpName op, cudaError_t error) {
  if (error != cudaSuccess) fail(op, ": ", explain(error));
}

// Throws if an earlier kernel left an error after which no call can succeed.
inline void check_earlier_kernels(OpName op) {
  const cudaError_t error = cudaStreamQuery(nullptr);
  if (error != cudaErrorNotReady) check_launch(op, error);
}

#else

inline void check_earlier_kernels(OpName) {}

[[noreturn]] inline void fail_without_cuda(OpName op) {
  fail(op, ": this build of " OPWRIGHT_EXTENSION_NAME
           " has no CUDA code; install a wheel from PyPI, or build it with OPWRIGHT_CUDA=on");
}

#endif

}  // namespace opwright
