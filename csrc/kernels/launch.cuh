// What every kernel needs: element arithmetic on the device, and a checked launch.
#pragma once

#include <cuda_runtime.h>

#include <climits>

#include "add.h"

namespace cuda_ext {

template <typename T>
__device__ Compute<T> load(T element) {
  return element;
}
__device__ inline float load(Half element) { return __half2float(element); }
__device__ inline float load(BFloat16 element) { return __bfloat162float(element); }

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

// Launches `kernel` with one thread for each of `threads` and returns the launch's error. An empty launch is an error
// in CUDA and success here. The last cudaGetLastError() takes the error off this library's runtime.
template <typename... Params, typename... Args>
cudaError_t launch(void (*kernel)(Params...), int64_t threads, cudaStream_t stream, Args... args) {
  if (threads == 0) return cudaSuccess;
  const int64_t blocks = (threads + threads_per_block - 1) / threads_per_block;
  if (blocks > INT_MAX) return cudaErrorInvalidConfiguration;
  kernel<<<static_cast<unsigned>(blocks), threads_per_block, 0, stream>>>(args...);
  return cudaGetLastError();
}

__device__ inline int64_t thread_index() {
  return static_cast<int64_t>(blockIdx.x) * threads_per_block + threadIdx.x;
}

}  // namespace cuda_ext
