// The elementwise kernel for inputs that are contiguous along another dimension than the output,
// such as a transposed matrix. Their tiles go through shared memory, so that every access to global
// memory is along a contiguous dimension.
#pragma once

#include "elementwise_apply.cuh"
#include "elementwise_plan.cuh"

namespace opwright {

// Dimension 0 of `walk` is the output's fastest, and dimension 1 is that of the inputs in
// `transposed` (one bit per input); the last operand of `walk` is the output. `across` and `down`
// count the tiles.
template <typename T, int inputs, int outputs, typename Function>
__global__ void __launch_bounds__(threads_per_block)
    tiles_kernel(Function function, Inputs<inputs> in, Outputs<T, outputs> out,
                 Walk<inputs + 1> walk, Divider across, Divider down, unsigned transposed) {
  constexpr int side = tile_side, pitch = tile_pitch(sizeof(T));
  constexpr int lines = threads_per_block / side, passes = side / lines;
  extern __shared__ uint4 tile_bytes[];
  const uint32_t next = across.divide(blockIdx.x), outer = down.divide(next);
  const uint32_t left = (blockIdx.x - next * across.divisor) * side;
  const uint32_t top = (next - outer * down.divisor) * side;
  const uint32_t width = walk.sizes[0].divisor, height = walk.sizes[1].divisor;
  int64_t offsets[inputs + 1] = {};
  if (walk.dims > 2) walk.add_offsets(outer, 2, offsets);
  const int along = threadIdx.x % side, line = threadIdx.x / side;
  const auto tile = [&](int i) {
    return reinterpret_cast<T*>(tile_bytes) + __popc(transposed & ((1u << i) - 1)) * side * pitch;
  };

  constexpr int together = sizeof(T) == 1 ? 8 : 4;  // loads in flight at once
  static_assert(passes % together == 0);
#pragma unroll
  for (int i = 0; i < inputs; ++i) {
    if (!(transposed >> i & 1)) continue;
    const uint32_t x = left + line, y = top + along;
    const int64_t* strides = walk.strides[i];
    const T* from =
        in.input[i].template elements<T>() + offsets[i] + x * strides[0] + y * strides[1];
    T* to = tile(i) + line * pitch + along;
#pragma unroll 1
    for (int k = 0; k < passes; k += together) {
      T elements[together];
#pragma unroll
      for (int t = 0; t < together; ++t) {
        if (x + (k + t) * lines < width && y < height)
          elements[t] = from[(k + t) * lines * strides[0]];
      }
#pragma unroll
      for (int t = 0; t < together; ++t) to[(k + t) * lines * pitch] = elements[t];
    }
  }
  __syncthreads();
  const uint32_t x = left + along, y = top + line;
  if (x >= width) return;
  const int64_t to = offsets[inputs] + x;
#pragma unroll 1
  for (int k = 0; k < passes; k += together) {
    T elements[together][inputs];
#pragma unroll
    for (int t = 0; t < together; ++t) {
      const uint32_t own = y + (k + t) * lines;
      if (own >= height) continue;
#pragma unroll
      for (int i = 0; i < inputs; ++i) {
        const int64_t* strides = walk.strides[i];
        elements[t][i] =
            transposed >> i & 1
                ? tile(i)[along * pitch + line + (k + t) * lines]
                : in.input[i]
                      .template elements<T>()[offsets[i] + x * strides[0] + own * strides[1]];
      }
    }
#pragma unroll
    for (int t = 0; t < together; ++t) {
      const uint32_t own = y + (k + t) * lines;
      if (own < height)
        apply_and_store(function, elements[t], out, to + own * walk.strides[inputs][1]);
    }
  }
}

}  // namespace opwright
