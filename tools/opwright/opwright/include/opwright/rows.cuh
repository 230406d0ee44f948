// What kernels that reduce rows share: a row in 16-byte vectors, sums over the threads of a row,
// and copies that are on their way while the threads compute.
#pragma once

#include "launch.cuh"
#include "walk.cuh"

namespace opwright {

// A vector's elements as numbers, and back.
template <typename T>
__device__ __forceinline__ void unpack(const uint4& bytes, Compute<T>* numbers) {
  const Vector<T>& vector = *reinterpret_cast<const Vector<T>*>(&bytes);
#pragma unroll
  for (int e = 0; e < Vector<T>::size; ++e) numbers[e] = load(vector.element[e]);
}
template <typename T>
__device__ __forceinline__ uint4 pack(const Compute<T>* numbers) {
  Vector<T> vector;
#pragma unroll
  for (int e = 0; e < Vector<T>::size; ++e) vector.element[e] = store<T>(numbers[e]);
  return *reinterpret_cast<const uint4*>(&vector);
}
// The 16-bit floats two at a time, as GPUs from 8.0 on have instructions for.
template <>
__device__ __forceinline__ void unpack<BFloat16>(const uint4& bytes, float* numbers) {
  const uint32_t words[] = {bytes.x, bytes.y, bytes.z, bytes.w};
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    numbers[2 * e] = __uint_as_float(words[e] << 16);
    numbers[2 * e + 1] = __uint_as_float(words[e] & 0xffff0000u);
  }
}
template <>
__device__ __forceinline__ void unpack<Half>(const uint4& bytes, float* numbers) {
  const auto* pairs = reinterpret_cast<const __half2*>(&bytes);
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    const float2 pair = __half22float2(pairs[e]);
    numbers[2 * e] = pair.x;
    numbers[2 * e + 1] = pair.y;
  }
}
template <>
__device__ __forceinline__ uint4 pack<BFloat16>(const float* numbers) {
  uint4 bytes;
  auto* pairs = reinterpret_cast<__nv_bfloat162*>(&bytes);
#pragma unroll
  for (int e = 0; e < 4; ++e) pairs[e] = __floats2bfloat162_rn(numbers[2 * e], numbers[2 * e + 1]);
  return bytes;
}
template <>
__device__ __forceinline__ uint4 pack<Half>(const float* numbers) {
  uint4 bytes;
  auto* pairs = reinterpret_cast<__half2*>(&bytes);
#pragma unroll
  for (int e = 0; e < 4; ++e) pairs[e] = __floats2half2_rn(numbers[2 * e], numbers[2 * e + 1]);
  return bytes;
}

__device__ __forceinline__ float inverse_sqrt(float x) {
  return rsqrtf(x);
}
__device__ __forceinline__ double inverse_sqrt(double x) {
  return rsqrt(x);
}

// The sum over the `threads` neighbouring threads that share a row; each of them gets it. Above a
// warp, a row has the whole block; `partial` holds a number for each of its warps. Calls that
// follow each other need two of these in turn: one barrier suffices then.
template <int threads, typename Number>
__device__ __forceinline__ Number sum_over_row(Number value, Number* partial) {
  constexpr unsigned all = 0xffffffffu;
#pragma unroll
  for (int d = (threads < 32 ? threads : 32) / 2; d > 0; d /= 2)
    value += __shfl_xor_sync(all, value, d);
  if constexpr (threads > 32) {
    constexpr int warps = threads / 32;
    const int lane = threadIdx.x % 32;
    if (lane == 0) partial[threadIdx.x / 32] = value;
    __syncthreads();
    value = partial[lane % warps];
#pragma unroll
    for (int d = warps / 2; d > 0; d /= 2) value += __shfl_xor_sync(all, value, d);
  }
  return value;
}

// What the caches are told of vectors that are read and written once.
enum class Caching {
  usual,
  past_l1,       // neither is kept in the L1 cache
  result_first,  // the L2 cache drops what was written first; from GPUs of 8.0 on
};
template <Caching caching>
__device__ __forceinline__ uint4 load_vector(const uint4* from) {
  if constexpr (caching != Caching::past_l1) return *from;
  uint4 bytes;
  asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(bytes.x), "=r"(bytes.y), "=r"(bytes.z), "=r"(bytes.w)
               : "l"(from));
  return bytes;
}
template <Caching caching>
__device__ __forceinline__ void store_vector(uint4* to, const uint4& bytes) {
  if constexpr (caching == Caching::past_l1) {
    asm volatile("st.global.cs.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(bytes.x),
                 "r"(bytes.y), "r"(bytes.z), "r"(bytes.w)
                 : "memory");
    return;
  }
#if __CUDA_ARCH__ >= 800
  if constexpr (caching == Caching::result_first) {
    uint64_t policy;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    asm volatile("st.global.L2::cache_hint.v4.u32 [%0], {%1, %2, %3, %4}, %5;" ::"l"(to),
                 "r"(bytes.x), "r"(bytes.y), "r"(bytes.z), "r"(bytes.w), "l"(policy)
                 : "memory");
    return;
  }
#endif
  *to = bytes;
}

// Copies 16 bytes to shared memory; from GPUs of 8.0 on without waiting for them.
__device__ __forceinline__ void copy_async(uint4* to, const uint4* from) {
#if __CUDA_ARCH__ >= 800
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
#else
  *to = *from;
#endif
}
// Ends a group of copies.
__device__ __forceinline__ void commit_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
// Waits until at most `groups` groups of this thread's copies are still on their way.
template <int groups>
__device__ __forceinline__ void wait_for_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(groups) : "memory");
#endif
}

// Where the row of each input starts, in elements.
template <int inputs>
__device__ __forceinline__ void row_offsets(const Walk<inputs>& rows, int64_t row,
                                            int64_t (&offsets)[inputs]) {
#pragma unroll
  for (int i = 0; i < inputs; ++i) offsets[i] = 0;
  rows.add_offsets(static_cast<uint32_t>(row), 0, offsets);
}

}  // namespace opwright
