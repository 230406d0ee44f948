// What kernels that reduce rows share: a row in 16-byte vectors, sums over the threads of a row,
// and copies that are on their way while the threads compute.
#pragma once

#include "pieces.cuh"
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
// The same for the end of a row: bytes from `end` on become zero. They are not read where they may
// lie outside the tensor; inside, checkers of memory accesses may think that they are.
template <bool inside>
__device__ __forceinline__ void copy_async(uint4* to, const char* from, const char* end) {
  const int64_t rest = end - from;
  const int bytes = rest >= 16 ? 16 : rest > 0 ? static_cast<int>(rest) : 0;
#if __CUDA_ARCH__ >= 800
  if constexpr (inside) {
    const auto address = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from),
                 "r"(bytes)
                 : "memory");
    return;
  }
#endif
  *to = {0, 0, 0, 0};
#pragma unroll 1
  for (int k = 0; 2 * k < bytes; ++k)  // no element is shorter than two bytes
    reinterpret_cast<uint16_t*>(to)[k] = reinterpret_cast<const uint16_t*>(from)[k];
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
  if (rows.dims == 1) {  // saves the start of short blocks some waiting
#pragma unroll
    for (int i = 0; i < inputs; ++i) offsets[i] = row * rows.strides[i][0];
    return;
  }
#pragma unroll
  for (int i = 0; i < inputs; ++i) offsets[i] = 0;
  rows.add_offsets(static_cast<uint32_t>(row), 0, offsets);
}

// --- rows that start anywhere ------------------------------------

// The aligned pieces of memory that hold a row. Vector c is cut out of the pieces c and c + 1.
// Whatever lies beyond the row's end counts as zero and is not read; the bytes before its start are
// in the same 16 bytes as its first element.
struct RowPieces {
  const char *first, *end;
  unsigned offset;  // of the row's first byte in the first piece

  template <typename T>
  __device__ __forceinline__ RowPieces(const T* row, int64_t size)
      : first(reinterpret_cast<const char*>(reinterpret_cast<uintptr_t>(row) / 16 * 16)),
        end(reinterpret_cast<const char*>(row + size)),
        offset(reinterpret_cast<uintptr_t>(row) % 16) {}

  // Whether the first `count` pieces lie before `limit`.
  __device__ __forceinline__ bool lie_before(const void* limit, int count) const {
    return first + int64_t{count} * 16 <= static_cast<const char*>(limit);
  }
  template <bool inside>
  __device__ __forceinline__ void copy(uint4* to, int c) const {
    copy_async<inside>(to, first + int64_t{c} * 16, end);
  }
};

// A vector of a row's elements from `column` on, which may lie before its start or beyond its end:
// what is not in the row counts as zero. It is loaded first and cut out later, so that several
// loads can be on their way.
template <typename T>
struct LoadedVector {
  uint4 low, high;
  unsigned offset;  // 0: `low` is the vector

  __device__ __forceinline__ LoadedVector() = default;
  __device__ __forceinline__ LoadedVector(const T* row, int64_t column, int64_t size) {
    const auto address = reinterpret_cast<uintptr_t>(row + column);
    const auto* from = reinterpret_cast<const uint4*>(address / 16 * 16);
    offset = address % 16;
    if (column >= 0 && reinterpret_cast<const T*>(from + (offset ? 2 : 1)) <= row + size) {
      low = from[0];
      if (offset) high = from[1];
      return;
    }
    offset = 0;
    Vector<T> vector;
#pragma unroll
    for (int e = 0; e < Vector<T>::size; ++e) {
      const bool is_own = column + e >= 0 && column + e < size;
      vector.element[e] = is_own ? row[column + e] : T{};
    }
    low = *reinterpret_cast<const uint4*>(&vector);
  }

  __device__ __forceinline__ uint4 cut() const {
    return offset ? cut_vector<T>({low, high, offset}) : low;
  }
};

// Writes the vector of a row's elements from `column` on, where `lanes` neighbouring threads hold
// neighbouring vectors of the row; they call this together. A row that starts off its alignment is
// written in aligned vectors too, each joined from two threads' elements; the first and the last
// thread write what is left element by element.
template <typename T, int lanes>
__device__ __forceinline__ void store_anywhere(T* row, int64_t column, int64_t size,
                                               const uint4& bytes) {
  constexpr int vector_size = Vector<T>::size;
  const auto offset = static_cast<unsigned>(reinterpret_cast<uintptr_t>(row) % 16);
  bool front = false, back = false;  // whether an aligned vector has these elements
  int first = vector_size;           // elements up to the next aligned address
  if (offset == 0) {
    front = column + vector_size <= size;
    if (front) *reinterpret_cast<uint4*>(row + column) = bytes;
  } else {
    const int lane = threadIdx.x % lanes;
    const unsigned group =
        lanes == 32 ? 0xffffffffu : ((1u << lanes % 32) - 1) << (threadIdx.x % 32 - lane);
    const uint4 before = {
        __shfl_up_sync(group, bytes.x, 1, lanes), __shfl_up_sync(group, bytes.y, 1, lanes),
        __shfl_up_sync(group, bytes.z, 1, lanes), __shfl_up_sync(group, bytes.w, 1, lanes)};
    first = static_cast<int>((16 - offset) / sizeof(T));
    front = lane > 0 && column + first <= size;
    back = lane + 1 < lanes && column + vector_size + first <= size;
    if (front) {
      *reinterpret_cast<uint4*>(row + column - (vector_size - first)) =
          cut_vector<T>({before, bytes, 16 - offset});
    }
  }
  const Vector<T>& vector = *reinterpret_cast<const Vector<T>*>(&bytes);
#pragma unroll
  for (int e = 0; e < vector_size; ++e) {
    if (!(e < first ? front : back) && column + e < size) row[column + e] = vector.element[e];
  }
}

}  // namespace opwright
