// The two driver calls that the launch path makes itself: see driver.h.
#include "driver.h"

namespace cuda_ext {
namespace {

// The driver's types, as its header has them: cuda.h is not part of the runtime's package.
using LaunchKernel = int (*)(void* function, unsigned, unsigned, unsigned, unsigned, unsigned,
                             unsigned, unsigned, cudaStream_t, void** args, void** extra);
using ContextDevice = int (*)(int* device);
constexpr unsigned first_with_kernel_handles = 12000;

template <typename Function>
Function entry_point(const char* name) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found;
  const auto error = cudaGetDriverEntryPointByVersion(name, &function, first_with_kernel_handles,
                                                      cudaEnableDefault, &found);
  return error == cudaSuccess ? reinterpret_cast<Function>(function) : nullptr;
}

}  // namespace

int current_device() {
  static const auto context_device = entry_point<ContextDevice>("cuCtxGetDevice");
  int device = -1;
  return context_device && context_device(&device) == cudaSuccess ? device : -1;
}

cudaError_t kernel_handle(const void* kernel, cudaKernel_t& handle) {
  const cudaError_t error = cudaGetKernel(&handle, kernel);
  if (error != cudaSuccess) cudaGetLastError();  // the caller has it; nothing stays pending
  return error;
}

cudaError_t launch_handle(cudaKernel_t kernel, unsigned blocks, unsigned threads,
                          cudaStream_t stream, void** args) {
  static const auto launch_kernel = entry_point<LaunchKernel>("cuLaunchKernel");
  if (!launch_kernel) return cudaErrorInsufficientDriver;
  // The driver numbers its errors as the runtime does.
  return static_cast<cudaError_t>(
      launch_kernel(kernel, blocks, 1, 1, threads, 1, 1, 0, stream, args, nullptr));
}

}  // namespace cuda_ext
