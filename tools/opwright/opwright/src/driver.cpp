// The driver calls that the launch path makes itself: see driver.h.
#include "opwright/driver.h"

namespace opwright {
namespace {

// The driver's types, declared as in cuda.h, which is not part of the runtime's package.
using LaunchKernel = int (*)(void* function, unsigned, unsigned, unsigned, unsigned, unsigned,
                             unsigned, unsigned, cudaStream_t, void** args, void** extra);
using CurrentContext = int (*)(void** context);
using ContextDevice = int (*)(int* device);
constexpr unsigned oldest_driver = 12000;

template <typename Function>
Function entry_point(const char* name) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found;
  const auto error =
      cudaGetDriverEntryPointByVersion(name, &function, oldest_driver, cudaEnableDefault, &found);
  return error == cudaSuccess ? reinterpret_cast<Function>(function) : nullptr;
}

}  // namespace

int current_device() {
  static const auto current_context = entry_point<CurrentContext>("cuCtxGetCurrent");
  static const auto context_device = entry_point<ContextDevice>("cuCtxGetDevice");
  // Asking for the device of a thread without a context is an error that tools which trace driver
  // calls would show. A thread keeps its context, so each thread checks only until it has one.
  thread_local bool has_context = false;
  if (!has_context) {
    void* context = nullptr;
    if (!current_context || current_context(&context) || !context) return -1;
    has_context = true;
  }
  int device = -1;
  return context_device(&device) == cudaSuccess ? device : -1;
}

cudaError_t kernel_function(const void* kernel, cudaFunction_t& function) {
  const cudaError_t error = cudaGetFuncBySymbol(&function, kernel);
  if (error != cudaSuccess) cudaGetLastError();  // the caller gets it; none stays pending
  return error;
}

cudaError_t launch_function(cudaFunction_t function, unsigned blocks, unsigned threads,
                            unsigned shared_bytes, cudaStream_t stream, void** args) {
  static const auto launch_kernel = entry_point<LaunchKernel>("cuLaunchKernel");
  if (!launch_kernel) return cudaErrorInsufficientDriver;
  // The driver numbers its errors as the runtime does.
  return static_cast<cudaError_t>(
      launch_kernel(function, blocks, 1, 1, threads, 1, 1, shared_bytes, stream, args, nullptr));
}

}  // namespace opwright
