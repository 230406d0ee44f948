// A Layout as kernels walk it to find the operands of an output element.
//
// Finding an element takes one division for each dimension but the last. GPUs have no instruction
// for division, so it becomes a multiplication by a number that the host computes once.
#pragma once

#include "layout.h"

namespace opwright {

// n / divisor for n < 2^31: (high half of n * multiplier + n) >> shift, where 2^shift is the
// smallest power of two that is not below the divisor. (Granlund and Montgomery, 1994.)
struct Divider {
  uint32_t divisor, multiplier, shift;

  Divider() = default;
  explicit Divider(uint32_t by) : divisor(by), shift(0) {
    while (shift < 32 && (uint64_t{1} << shift) < by) ++shift;
    const uint64_t rest = (uint64_t{1} << shift) - by;
    multiplier = static_cast<uint32_t>((rest << 32) / by + 1);
  }

  __device__ __forceinline__ uint32_t divide(uint32_t n) const {
    return (__umulhi(n, multiplier) + n) >> shift;
  }
};

constexpr int64_t max_walk = INT32_MAX;  // the most elements a walk can count

template <int inputs>
struct Walk {
  int dims;  // at least 1
  Divider sizes[max_dims];
  int64_t strides[inputs][max_dims];

  Walk() = default;
  explicit Walk(const Layout& layout) : dims(layout.dims) {
    for (int d = 0; d < dims; ++d) {
      sizes[d] = Divider(static_cast<uint32_t>(layout.sizes[d]));
      for (int i = 0; i < inputs; ++i) strides[i][d] = layout.strides[i][d];
    }
  }

  // Splits a single dimension into `rows` rows of `length` elements; the last may be shorter.
  void fold(uint32_t length, uint32_t rows) {
    dims = 2;
    sizes[0] = Divider(length);
    sizes[1] = Divider(rows);
    for (int i = 0; i < inputs; ++i) strides[i][1] = length * strides[i][0];
  }

  // Adds to `offsets` the position of element `n` of the dimensions from `first` on.
  __device__ __forceinline__ void add_offsets(uint32_t n, int first, int64_t* offsets) const {
#pragma unroll 1  // unrolled code would be long, and most layouts have two dimensions
    for (int d = first; d < dims - 1; ++d) {
      const uint32_t next = sizes[d].divide(n);
      const int64_t at = n - next * sizes[d].divisor;
#pragma unroll
      for (int i = 0; i < inputs; ++i) offsets[i] += at * strides[i][d];
      n = next;
    }
#pragma unroll
    for (int i = 0; i < inputs; ++i) offsets[i] += n * strides[i][dims - 1];
  }
};

}  // namespace opwright
