// Chooses which of the CUDA engine's kernels computes a layout, and plans its launch.
//
// Nothing here depends on the type of the elements, only on their size, so one copy of the code
// serves all dtypes.
#pragma once

#include "elementwise.h"
#include "launch.cuh"
#include "walk.cuh"

namespace opwright {

// An input: its first element, and the range of bytes that holds all elements.
struct Input {
  const void* data;
  const char *begin, *end;

  template <typename T>
  __device__ __forceinline__ const T* elements() const {
    return static_cast<const T*>(data);
  }
};

template <int inputs>
struct Inputs {
  Input input[inputs];
};

// The kernels that an op has besides the one for any layout. Only ops with several inputs have
// tiles, because the output takes the order of a single input. Elements of more than four bytes
// have none: the gain is not worth the larger library.
struct Kernels {
  bool dense, rows, ragged, tiles;
  // How many rows, or single elements, one thread computes; larger numbers cost code size.
  int rows_each, elements_each;
};
constexpr Kernels kernels_for(int element_size, int inputs, bool few) {
  const bool is_short = element_size <= 4;
  if (few) return {false, is_short, false, false, 1, 1};
  return {true, true, element_size < 16, is_short && inputs > 1, element_size == 1 ? 4 : 2, 2};
}
constexpr int tile_side = 64;  // in elements
// The distance between a tile's lines in shared memory: neither lines nor columns share banks.
constexpr int tile_pitch(int element_size) {
  return tile_side + 4 / element_size;
}

// Finds the bytes from an input's first to its last element; strides may be negative.
inline Input make_input(const void* data, const Layout& layout, int i, int element_size) {
  int64_t first = 0, last = 0;
  for (int d = 0; d < layout.dims; ++d)
    (layout.strides[i][d] < 0 ? first : last) += (layout.sizes[d] - 1) * layout.strides[i][d];
  const char* bytes = static_cast<const char*>(data);
  return {data, bytes + first * element_size, bytes + (last + 1) * element_size};
}

enum class Path { dense, rows, ragged, tiles, strided };

// The chosen kernel and its arguments.
template <int inputs>
struct Plan {
  Path path;
  Grid grid;
  Inputs<inputs> in;
  Walk<inputs> walk;
  Divider row_vectors, row_groups;  // of the rows kernel
  Walk<inputs + 1> tile_walk;       // of the tiles kernel, and these three
  Divider across, down;
  unsigned transposed = 0;
};

// Whether every input is contiguous or constant along the rows.
template <int inputs>
bool has_rows(const Layout& layout) {
  for (int i = 0; i < inputs; ++i) {
    if (layout.strides[i][0] != 0 && layout.strides[i][0] != 1) return false;
  }
  return true;
}

// Whether every row can be written, and each contiguous one read, in aligned vectors of `size`
// elements.
template <int inputs>
bool has_aligned_rows(const Operands& operands, const Layout& layout, int size) {
  if (layout.dims > 1 && layout.sizes[0] % size != 0) return false;
  for (int i = 0; i < inputs; ++i) {
    if (layout.strides[i][0] == 0) continue;
    if (!is_aligned(operands.in[i])) return false;
    for (int d = 1; d < layout.dims; ++d) {
      if (layout.strides[i][d] % size != 0) return false;
    }
  }
  return true;
}

template <int outputs>
bool has_aligned_outputs(const Operands& operands) {
  bool aligned = true;
  for (int o = 0; o < outputs; ++o) aligned &= is_aligned(operands.out[o]);
  return aligned;
}

template <int inputs, int outputs>
bool is_dense(const Operands& operands, const Layout& layout) {
  bool dense = layout.is_dense() && has_aligned_outputs<outputs>(operands);
  for (int i = 0; i < inputs; ++i) dense &= is_aligned(operands.in[i]);
  return dense;
}

// Plans tiles if an input is contiguous along another dimension than the rows; returns whether
// tiles can be used.
template <int inputs>
bool plan_tiles(const Layout& layout, int element_size, Plan<inputs>& plan) {
  constexpr int shortest = 8, most_shared = 48 * 1024;
  const auto is_transposed = [&](int i, int d) {
    return layout.strides[i][0] != 0 && layout.strides[i][0] != 1 && layout.strides[i][d] == 1;
  };
  int other = 0, count = 0;  // the dimension, and how many inputs go through shared memory
  for (int d = 1; d < layout.dims && other == 0; ++d) {
    for (int i = 0; i < inputs; ++i) {
      if (is_transposed(i, d) && layout.sizes[d] >= shortest) other = d;
    }
  }
  if (other == 0 || layout.sizes[0] < shortest) return false;
  Walk<inputs + 1>& walk = plan.tile_walk;
  const auto place = [&](int to, int from) {
    walk.sizes[to] = Divider(static_cast<uint32_t>(layout.sizes[from]));
    for (int i = 0; i < inputs; ++i) walk.strides[i][to] = layout.strides[i][from];
    walk.strides[inputs][to] = 1;
    for (int d = 0; d < from; ++d) walk.strides[inputs][to] *= layout.sizes[d];
  };
  place(0, 0);
  place(1, other);
  walk.dims = 2;
  for (int d = 1; d < layout.dims; ++d) {
    if (d != other) place(walk.dims++, d);
  }
  for (int i = 0; i < inputs; ++i) {
    if (is_transposed(i, other)) plan.transposed |= 1u << i, ++count;
  }
  constexpr int side = tile_side;
  const int64_t across = divide_up(layout.sizes[0], side);
  const int64_t down = divide_up(layout.sizes[other], side);
  const int64_t outer = layout.numel / layout.sizes[0] / layout.sizes[other];
  const int shared = count * side * tile_pitch(element_size) * element_size;
  if (shared > most_shared || across * down * outer > max_walk) return false;
  plan.path = Path::tiles;
  plan.across = Divider(static_cast<uint32_t>(across));
  plan.down = Divider(static_cast<uint32_t>(down));
  plan.grid = {across * down * outer, threads_per_block, shared};
  return true;
}

template <int inputs, int outputs>
Plan<inputs> make_plan(const Operands& operands, const Layout& layout, int element_size,
                       Kernels kernels) {
  const int size = 16 / element_size;
  Plan<inputs> plan;
  for (int i = 0; i < inputs; ++i)
    plan.in.input[i] = make_input(operands.in[i], layout, i, element_size);
  if (kernels.dense && is_dense<inputs, outputs>(operands, layout)) {
    plan.path = Path::dense;
    plan.grid = grid_of(divide_up(layout.numel, size));
    return plan;
  }
  plan.walk = Walk<inputs>(layout);
  const bool vectors = has_aligned_outputs<outputs>(operands) && has_rows<inputs>(layout);
  if (kernels.rows && vectors && has_aligned_rows<inputs>(operands, layout, size)) {
    plan.path = Path::rows;
    const bool folded = layout.dims == 1;  // into rows as wide as a block
    const int64_t row_length = folded ? threads_per_block * size : layout.sizes[0];
    const int64_t rows = folded ? divide_up(layout.numel, row_length) : layout.sizes[1];
    if (folded) plan.walk.fold(static_cast<uint32_t>(row_length), static_cast<uint32_t>(rows));
    plan.row_vectors = Divider(static_cast<uint32_t>(row_length / size));
    plan.row_groups = Divider(static_cast<uint32_t>(divide_up(rows, kernels.rows_each)));
    const int64_t outer = folded ? 1 : layout.numel / row_length / rows;
    plan.grid = grid_of(outer * plan.row_vectors.divisor * plan.row_groups.divisor);
  } else if (kernels.ragged && vectors && (layout.dims == 1 || layout.sizes[0] >= 4 * size)) {
    plan.path = Path::ragged;
    plan.grid = grid_of(divide_up(layout.numel, size));
  } else if (!kernels.tiles || !plan_tiles<inputs>(layout, element_size, plan)) {
    plan.path = Path::strided;
    plan.grid = grid_of(divide_up(layout.numel, kernels.elements_each));
  }
  return plan;
}

// The halves of a layout that is too large to walk, cut so that the output stays aligned.
struct Halves {
  Operands operands[2];
  Layout layouts[2];
};
template <int inputs, int outputs>
Halves halve(const Operands& operands, const Layout& layout, int element_size) {
  Halves halves{{operands, operands}, {}};
  layout.split(16, halves.layouts[0], halves.layouts[1]);
  const int slowest = halves.layouts[0].dims - 1;
  const int64_t outer = halves.layouts[0].sizes[slowest];
  for (int i = 0; i < inputs; ++i) {
    halves.operands[1].in[i] = static_cast<const char*>(operands.in[i]) +
                               outer * layout.strides[i][slowest] * element_size;
  }
  for (int o = 0; o < outputs; ++o)
    halves.operands[1].out[o] =
        static_cast<char*>(operands.out[o]) + halves.layouts[0].numel * element_size;
  return halves;
}

}  // namespace opwright
