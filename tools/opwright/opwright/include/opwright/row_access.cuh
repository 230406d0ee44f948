// Device functions shared by the kernels that reduce rows: packing elements into memory accesses,
// sums over the threads of a row, and asynchronous copies to shared memory.
#pragma once

#include <cstring>

#include "launch.cuh"
#include "walk.cuh"

// For lambdas: clang would otherwise call them, with a copy of the kernel's arguments on the stack.
#define OPWRIGHT_ALWAYS __attribute__((always_inline))

namespace opwright {

// The type that moves `bytes` bytes in one memory access.
template <int bytes>
struct BitsOf;
template <>
struct BitsOf<16> {
  using Type = uint4;
};
template <>
struct BitsOf<8> {
  using Type = uint2;
};
template <>
struct BitsOf<4> {
  using Type = uint32_t;
};
template <>
struct BitsOf<2> {
  using Type = uint16_t;
};
template <int bytes>
using Bits = typename BitsOf<bytes>::Type;

// Convert the elements of one access to numbers and back. 16-bit floats are converted in pairs,
// for which GPUs from 8.0 on have instructions.
template <typename T, typename Bits>
__device__ __forceinline__ void unpack(const Bits& bits, Compute<T>* numbers) {
  if constexpr (std::is_same_v<T, BFloat16> && sizeof(Bits) >= 4) {
    const auto* words = reinterpret_cast<const uint32_t*>(&bits);
#pragma unroll
    for (int e = 0; e < static_cast<int>(sizeof(Bits) / 4); ++e) {
      numbers[2 * e] = __uint_as_float(words[e] << 16);
      numbers[2 * e + 1] = __uint_as_float(words[e] & 0xffff0000u);
    }
  } else if constexpr (std::is_same_v<T, Half> && sizeof(Bits) >= 4) {
    const auto* pairs = reinterpret_cast<const __half2*>(&bits);
#pragma unroll
    for (int e = 0; e < static_cast<int>(sizeof(Bits) / 4); ++e) {
      const float2 pair = __half22float2(pairs[e]);
      numbers[2 * e] = pair.x;
      numbers[2 * e + 1] = pair.y;
    }
  } else {
    T elements[sizeof(Bits) / sizeof(T)];
    memcpy(elements, &bits, sizeof bits);
#pragma unroll
    for (int e = 0; e < static_cast<int>(sizeof(Bits) / sizeof(T)); ++e)
      numbers[e] = load(elements[e]);
  }
}
template <typename T, typename Bits>
__device__ __forceinline__ Bits pack(const Compute<T>* numbers) {
  Bits bits;
  if constexpr (std::is_same_v<T, BFloat16> && sizeof(Bits) >= 4) {
#if __CUDA_ARCH__ >= 800
    auto* pairs = reinterpret_cast<__nv_bfloat162*>(&bits);
#pragma unroll
    for (int e = 0; e < static_cast<int>(sizeof(Bits) / 4); ++e)
      pairs[e] = __floats2bfloat162_rn(numbers[2 * e], numbers[2 * e + 1]);
#else
    auto* words = reinterpret_cast<uint32_t*>(&bits);
#pragma unroll
    for (int e = 0; e < static_cast<int>(sizeof(Bits) / 4); ++e)
      words[e] = __byte_perm(round_to_bfloat16(numbers[2 * e]),
                             round_to_bfloat16(numbers[2 * e + 1]), 0x7632);
#endif
  } else if constexpr (std::is_same_v<T, Half> && sizeof(Bits) >= 4) {
    auto* pairs = reinterpret_cast<__half2*>(&bits);
#pragma unroll
    for (int e = 0; e < static_cast<int>(sizeof(Bits) / 4); ++e)
      pairs[e] = __floats2half2_rn(numbers[2 * e], numbers[2 * e + 1]);
  } else {
    T elements[sizeof(Bits) / sizeof(T)];
#pragma unroll
    for (int e = 0; e < static_cast<int>(sizeof(Bits) / sizeof(T)); ++e)
      elements[e] = store<T>(numbers[e]);
    memcpy(&bits, elements, sizeof bits);
  }
  return bits;
}

// Adds the elements of two accesses; each sum is rounded once.
template <typename T, typename Bits>
__device__ __forceinline__ Bits add_elements(const Bits& a, const Bits& b) {
  constexpr bool is_bfloat16 = std::is_same_v<T, BFloat16>;
#if __CUDA_ARCH__ >= 800
  constexpr bool in_pairs = is_bfloat16 || std::is_same_v<T, Half>;
#else
  constexpr bool in_pairs = std::is_same_v<T, Half>;
#endif
  if constexpr (in_pairs && sizeof(Bits) >= 4) {
    using Pair = std::conditional_t<is_bfloat16, __nv_bfloat162, __half2>;
    Bits sums;
#pragma unroll
    for (int e = 0; e < static_cast<int>(sizeof(Bits) / 4); ++e)
      reinterpret_cast<Pair*>(&sums)[e] =
          __hadd2(reinterpret_cast<const Pair*>(&a)[e], reinterpret_cast<const Pair*>(&b)[e]);
    return sums;
  } else {
    constexpr int count = sizeof(Bits) / sizeof(T);
    Compute<T> numbers[count], others[count];
    unpack<T>(a, numbers);
    unpack<T>(b, others);
#pragma unroll
    for (int e = 0; e < count; ++e) numbers[e] += others[e];
    return pack<T, Bits>(numbers);
  }
}

// The sum over the `threads` neighbouring threads of a warp that share a row; all of them get it.
template <int threads, typename Number>
__device__ __forceinline__ Number sum_over_warp(Number value) {
#pragma unroll
  for (int d = threads / 2; d > 0; d /= 2) value += __shfl_xor_sync(0xffffffffu, value, d);
  return value;
}

// The same if the number of threads, a power of two, is known only at run time.
template <typename Number>
__device__ __forceinline__ Number sum_over_part(Number value, int threads) {
  for (int d = threads / 2; d > 0; d /= 2) value += __shfl_xor_sync(0xffffffffu, value, d);
  return value;
}

// The same over a whole block of any number of warps. `partial` holds a number for each warp.
// Successive calls must alternate between two such arrays, so that one barrier is enough.
template <typename Number>
__device__ __forceinline__ Number sum_over_block(Number value, Number* partial) {
  const int lane = threadIdx.x % 32, warps = blockDim.x / 32;
  value = sum_over_warp<32>(value);
  if (warps == 1) return value;
  if (lane == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  return sum_over_warp<32>(lane < warps ? partial[lane] : Number(0));
}

// The sum over a row's threads: the whole block, or `threads` threads of a warp.
template <int threads, typename Number>
__device__ __forceinline__ Number sum_over_row(Number value, Number* partial) {
  if constexpr (threads > 32) {
    return sum_over_block(value, partial);
  } else {
    return sum_over_warp<threads>(value);
  }
}

// Copies an access to shared memory, or zeros if it is not `wanted`; GPUs from 8.0 on do not wait
// for the copy. `from` must be readable in either case: a branch would delay the copies behind it.
template <typename Bits>
__device__ __forceinline__ void copy_async(Bits* to, const Bits* from, bool wanted) {
#if __CUDA_ARCH__ >= 800
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(to));
  const unsigned bytes = wanted ? sizeof(Bits) : 0;
  if constexpr (sizeof(Bits) == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from),
                 "r"(bytes)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(address), "l"(from),
                 "n"(sizeof(Bits)), "r"(bytes)
                 : "memory");
  }
#else
  *to = wanted ? *from : Bits{};
#endif
}
// Makes a group of the copies since the last call.
__device__ __forceinline__ void commit_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
// Waits until at most `groups` groups of this thread's copies are unfinished.
template <int groups>
__device__ __forceinline__ void wait_for_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(groups) : "memory");
#endif
}

// Finds where the row starts in each input, in elements. Evenly spaced rows, the usual case, are
// computed before the branch so that no load waits behind it.
template <int inputs>
__device__ __forceinline__ void row_offsets(const Walk<inputs>& rows, int64_t row,
                                            int64_t (&offsets)[inputs]) {
#pragma unroll
  for (int i = 0; i < inputs; ++i) offsets[i] = row * rows.strides[i][0];
  if (rows.dims == 1) return;
#pragma unroll
  for (int i = 0; i < inputs; ++i) offsets[i] = 0;
  rows.add_offsets(static_cast<uint32_t>(row), 0, offsets);
}

}  // namespace opwright
