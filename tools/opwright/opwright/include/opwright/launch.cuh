// Helpers for every CUDA kernel: converting elements to numbers and back, and a checked launch.
#pragma once

#include <cuda_runtime.h>

#include <atomic>
#include <climits>

#include "driver.h"
#include "element.h"
#include "stream.h"

namespace opwright {

template <typename T>
__device__ __forceinline__ Compute<T> load(T element) {
  return element;
}
__device__ __forceinline__ float load(Half element) {
  return __half2float(element);
}
__device__ __forceinline__ float load(BFloat16 element) {
  return __bfloat162float(element);
}

// Rounds to a bfloat16 in the upper half of a word, for GPUs before 8.0, which have no instruction
// for it. The toolkit's own function takes several times as many instructions.
__device__ __forceinline__ uint32_t round_to_bfloat16(float value) {
  const uint32_t bits = __float_as_uint(value);
  return value == value ? bits + 0x7fffu + (bits >> 16 & 1) : 0x7fffffffu;
}

template <typename T>
__device__ __forceinline__ T store(Compute<T> value) {
  return value;
}
template <>
__device__ __forceinline__ Half store<Half>(float value) {
  return __float2half_rn(value);
}
template <>
__device__ __forceinline__ BFloat16 store<BFloat16>(float value) {
#if __CUDA_ARCH__ >= 800
  return __float2bfloat16_rn(value);
#else
  return __ushort_as_bfloat16(static_cast<unsigned short>(round_to_bfloat16(value) >> 16));
#endif
}

// 16 bytes of elements: the widest load and store.
template <typename T>
struct alignas(16) Vector {
  static constexpr int size = 16 / sizeof(T);
  T element[size];
};

inline bool is_aligned(const void* pointer) {
  return reinterpret_cast<uintptr_t>(pointer) % 16 == 0;
}

constexpr int64_t divide_up(int64_t n, int64_t by) {
  return (n + by - 1) / by;
}

constexpr int threads_per_block = 256;

struct Grid {
  int64_t blocks;
  int threads = threads_per_block;
  int shared_bytes = 0;
};

inline Grid grid_of(int64_t threads) {
  return {divide_up(threads, threads_per_block)};
}

__device__ inline int64_t thread_index() {
  return static_cast<int64_t>(blockIdx.x) * threads_per_block + threadIdx.x;
}

template <typename T>
struct Exactly {
  using Type = T;
};

// The kernel's function on the current device, looked up once for each of the first 64 devices.
template <auto kernel>
cudaError_t function_of(int device, cudaFunction_t& function) {
  constexpr int known_devices = 64;
  static std::atomic<cudaFunction_t> known[known_devices] = {};
  const bool can_know = device < known_devices;
  function = can_know ? known[device].load(std::memory_order_relaxed) : nullptr;
  if (function) return cudaSuccess;
  const cudaError_t error = kernel_function(reinterpret_cast<const void*>(kernel), function);
  if (error == cudaSuccess && can_know) known[device].store(function, std::memory_order_relaxed);
  return error;
}

// Launches `kernel` and returns the launch's error; an empty grid succeeds. The first argument is
// `kernel` again: the other arguments are converted to the types of its parameters.
template <auto kernel, typename... Params>
cudaError_t launch(void (*)(Params...), Grid grid, Stream stream,
                   typename Exactly<Params>::Type... args) {
  if (grid.blocks == 0) return cudaSuccess;
  if (grid.blocks > INT_MAX) return cudaErrorInvalidConfiguration;
  cudaFunction_t function;
  const cudaError_t error = function_of<kernel>(stream.device, function);
  if (error != cudaSuccess) return error;
  void* pointers[] = {&args...};
  return launch_function(function, static_cast<unsigned>(grid.blocks),
                         static_cast<unsigned>(grid.threads),
                         static_cast<unsigned>(grid.shared_bytes), stream.handle, pointers);
}

template <auto kernel, typename... Args>
cudaError_t launch(Grid grid, Stream stream, Args... args) {
  return launch<kernel>(kernel, grid, stream, args...);
}

}  // namespace opwright
