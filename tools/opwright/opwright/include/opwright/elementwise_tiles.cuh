// The elementwise kernel for inputs that are contiguous along another dimension than the output,
// such as a transposed matrix: a square tile of them goes through shared memory, so that every
// access to global memory is along the dimension that is contiguous there.
#pragma once

#include "elementwise_apply.cuh"
#include "elementwise_plan.cuh"

namespace opwright {

// Dimension 0 of `walk` is the output's fastest, dimension 1 that of the inputs in `transposed`
// (one bit for each); the last operand of `walk` is the output. `across` and `down` count the
// tiles.
template <typename T, int inputs, typename Function>
__global__ void __launch_bounds__(threads_per_block)
    tiles_kernel(Function function, Inputs<inputs> in, T* out, Walk<inputs + 1> walk,
                 Divider across, Divider down, unsigned transposed) {
  constexpr int side = tile_side(sizeof(T)), pitch = tile_pitch(sizeof(T));
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

  T elements[passes][inputs];
#pragma unroll
  for (int i = 0; i < inputs; ++i) {
    const bool is_transposed = transposed >> i & 1;
    const uint32_t x = left + (is_transposed ? line : along);
    const uint32_t y = top + (is_transposed ? along : line);
    const int64_t *strides = walk.strides[i], step = strides[is_transposed ? 0 : 1] * lines;
    const T* from =
        in.input[i].template elements<T>() + offsets[i] + x * strides[0] + y * strides[1];
#pragma unroll
    for (int k = 0; k < passes; ++k) {
      const uint32_t moved = k * lines;
      if (is_transposed ? x + moved < width && y < height : x < width && y + moved < height)
        elements[k][i] = from[k * step];
    }
  }
#pragma unroll
  for (int i = 0; i < inputs; ++i) {
    if (!(transposed >> i & 1)) continue;
#pragma unroll
    for (int k = 0; k < passes; ++k) tile(i)[(line + k * lines) * pitch + along] = elements[k][i];
  }
  __syncthreads();
  const uint32_t x = left + along, y = top + line;
  const int64_t step = walk.strides[inputs][1];
  T* to = out + offsets[inputs] + x + y * step;
#pragma unroll
  for (int k = 0; k < passes; ++k) {
    if (x >= width || y + k * lines >= height) continue;
#pragma unroll
    for (int i = 0; i < inputs; ++i) {
      if (transposed >> i & 1) elements[k][i] = tile(i)[along * pitch + line + k * lines];
    }
    to[k * lines * step] = apply(function, elements[k]);
  }
}

}  // namespace opwright
