// What every kernel needs: element arithmetic on the device, and a checked launch.
#pragma once

#include <cuda_runtime.h>

#include <atomic>
#include <climits>

#include "add.h"
#include "driver.h"

namespace cuda_ext {

template <typename T>
__device__ Compute<T> load(T element) {
  return element;
}
__device__ inline float load(Half element) {
  return __half2float(element);
}
__device__ inline float load(BFloat16 element) {
  return __bfloat162float(element);
}

template <typename T>
__device__ T store(Compute<T> value) {
  return value;
}
template <>
__device__ inline Half store<Half>(float value) {
  return __float2half_rn(value);
}
template <>
__device__ inline BFloat16 store<BFloat16>(float value) {
  return __float2bfloat16_rn(value);
}

template <typename T>
__device__ T sum(T a, T b) {
  return store<T>(load(a) + load(b));
}

constexpr int threads_per_block = 256;
constexpr int max_devices = 64;  // more work too, a little slower

template <typename T>
struct Exactly {
  using Type = T;
};

// Launches `kernel` with one thread for each of `threads` and returns the launch's error; an empty
// launch succeeds. The second parameter is `kernel` again: its parameters are what the arguments
// are converted to.
template <auto kernel, typename... Params>
cudaError_t launch(void (*)(Params...), int64_t threads, Stream stream,
                   typename Exactly<Params>::Type... args) {
  if (threads == 0) return cudaSuccess;
  const int64_t blocks = (threads + threads_per_block - 1) / threads_per_block;
  if (blocks > INT_MAX) return cudaErrorInvalidConfiguration;
  static std::atomic<cudaFunction_t> known[max_devices] = {};
  const bool can_know = stream.device < max_devices;
  cudaFunction_t function =
      can_know ? known[stream.device].load(std::memory_order_relaxed) : nullptr;
  if (!function) {
    const cudaError_t error = kernel_function(reinterpret_cast<const void*>(kernel), function);
    if (error != cudaSuccess) return error;
    if (can_know) known[stream.device].store(function, std::memory_order_relaxed);
  }
  void* pointers[] = {&args...};
  return launch_function(function, static_cast<unsigned>(blocks), threads_per_block, stream.handle,
                         pointers);
}

template <auto kernel, typename... Args>
cudaError_t launch(int64_t threads, Stream stream, Args... args) {
  return launch<kernel>(kernel, threads, stream, args...);
}

__device__ inline int64_t thread_index() {
  return static_cast<int64_t>(blockIdx.x) * threads_per_block + threadIdx.x;
}

}  // namespace cuda_ext
