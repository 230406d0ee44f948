// Which of the CUDA engine's kernels computes a layout, and what it is told.
//
// Nothing here depends on the element's type, only on its size: it is compiled once for all dtypes.
#pragma once

#include "elementwise.h"
#include "launch.cuh"
#include "walk.cuh"

namespace opwright {

// An input: its first element, and the bytes in which they all lie.
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

// More rows a thread gain little where elements are wide, and cost code.
constexpr int rows_per_thread(int element_size) {
  return element_size == 1 ? 4 : 2;
}

constexpr int strided_elements = 2;  // of each thread, a block's width apart

// The bytes from an input's first to its last element, whatever the sign of its strides.
inline Input make_input(const void* data, const Layout& layout, int i, int element_size) {
  int64_t first = 0, last = 0;
  for (int d = 0; d < layout.dims; ++d)
    (layout.strides[i][d] < 0 ? first : last) += (layout.sizes[d] - 1) * layout.strides[i][d];
  const char* bytes = static_cast<const char*>(data);
  return {data, bytes + first * element_size, bytes + (last + 1) * element_size};
}

enum class Path { dense, rows, ragged, strided };

// Which kernel computes a layout, and what it is told.
template <int inputs>
struct Plan {
  Path path;
  Grid grid;
  Inputs<inputs> in;
  Walk<inputs> walk;
  Divider row_vectors, row_groups;  // of the rows kernel
};

// Whether every input is contiguous or constant along the rows.
template <int inputs>
bool has_rows(const Layout& layout) {
  for (int i = 0; i < inputs; ++i) {
    if (layout.strides[i][0] != 0 && layout.strides[i][0] != 1) return false;
  }
  return true;
}

// Whether every row can be written, and where it is contiguous also read, in aligned vectors of
// `size` elements.
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

template <int inputs>
bool is_dense(const Operands& operands, const Layout& layout) {
  bool dense = layout.is_dense() && is_aligned(operands.out);
  for (int i = 0; i < inputs; ++i) dense &= is_aligned(operands.in[i]);
  return dense;
}

template <int inputs>
Plan<inputs> make_plan(const Operands& operands, const Layout& layout, int element_size) {
  const int size = 16 / element_size;
  Plan<inputs> plan;
  for (int i = 0; i < inputs; ++i)
    plan.in.input[i] = make_input(operands.in[i], layout, i, element_size);
  if (is_dense<inputs>(operands, layout)) {
    plan.path = Path::dense;
    plan.grid = grid_of(divide_up(layout.numel, size));
    return plan;
  }
  plan.walk = Walk<inputs>(layout);
  const bool vectors = is_aligned(operands.out) && has_rows<inputs>(layout);
  if (vectors && has_aligned_rows<inputs>(operands, layout, size)) {
    plan.path = Path::rows;
    const bool folded = layout.dims == 1;  // into rows of a block's width
    const int64_t row_length = folded ? threads_per_block * size : layout.sizes[0];
    const int64_t rows = folded ? divide_up(layout.numel, row_length) : layout.sizes[1];
    if (folded) plan.walk.fold(static_cast<uint32_t>(row_length), static_cast<uint32_t>(rows));
    plan.row_vectors = Divider(static_cast<uint32_t>(row_length / size));
    plan.row_groups =
        Divider(static_cast<uint32_t>(divide_up(rows, rows_per_thread(element_size))));
    const int64_t outer = folded ? 1 : layout.numel / row_length / rows;
    plan.grid = grid_of(outer * plan.row_vectors.divisor * plan.row_groups.divisor);
  } else if (vectors && (layout.dims == 1 || layout.sizes[0] >= 4 * size)) {
    plan.path = Path::ragged;
    plan.grid = grid_of(divide_up(layout.numel, size));
  } else {
    plan.path = Path::strided;
    plan.grid = grid_of(divide_up(layout.numel, strided_elements));
  }
  return plan;
}

// Two halves of a layout that is too large to walk, cut where the output stays aligned.
struct Halves {
  Operands operands[2];
  Layout layouts[2];
};
template <int inputs>
Halves halve(const Operands& operands, const Layout& layout, int element_size) {
  Halves halves{{operands, operands}, {}};
  layout.split(16, halves.layouts[0], halves.layouts[1]);
  const int slowest = halves.layouts[0].dims - 1;
  const int64_t outer = halves.layouts[0].sizes[slowest];
  for (int i = 0; i < inputs; ++i) {
    halves.operands[1].in[i] = static_cast<const char*>(operands.in[i]) +
                               outer * layout.strides[i][slowest] * element_size;
  }
  halves.operands[1].out =
      static_cast<char*>(operands.out) + halves.layouts[0].numel * element_size;
  return halves;
}

}  // namespace opwright
