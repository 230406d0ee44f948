// Vectors that start anywhere: cut out of the two aligned pieces of memory that hold them.
#pragma once

#include "launch.cuh"

namespace opwright {

// 16 bytes of an input, as they come from memory: the aligned pieces that hold them.
struct Pieces {
  uint4 low, high;
  unsigned offset;  // of the first byte in `low`
};

template <typename T>
__device__ __forceinline__ Pieces load_pieces(const T* from) {
  const auto address = reinterpret_cast<uintptr_t>(from);
  const auto* low = reinterpret_cast<const uint4*>(address / 16 * 16);
  return {low[0], low[1], static_cast<unsigned>(address % 16)};
}

template <typename T>
__device__ __forceinline__ uint4 cut_vector(const Pieces& pieces) {
  uint32_t w[8] = {pieces.low.x,  pieces.low.y,  pieces.low.z,  pieces.low.w,
                   pieces.high.x, pieces.high.y, pieces.high.z, pieces.high.w};
  if (pieces.offset & 8) {
#pragma unroll
    for (int k = 0; k < 6; ++k) w[k] = w[k + 2];
  }
  if (sizeof(T) <= 4 && (pieces.offset & 4)) {
#pragma unroll
    for (int k = 0; k < 5; ++k) w[k] = w[k + 1];
  }
  if (sizeof(T) <= 2) {
#pragma unroll
    for (int k = 0; k < 4; ++k) w[k] = __funnelshift_r(w[k], w[k + 1], pieces.offset % 4 * 8);
  }
  return {w[0], w[1], w[2], w[3]};
}

}  // namespace opwright
