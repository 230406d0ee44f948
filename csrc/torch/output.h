// Allocates an op's output and picks the kernel's path: one dense run of elements, or a strided
// walk.
#pragma once

#include <algorithm>

#include "arguments.h"

namespace cuda_ext {

inline bool is_same_shape(const Tensor& a, const Tensor& b) {
  return a.dims() == b.dims() && std::equal(a.sizes(), a.sizes() + a.dims(), b.sizes());
}

// Whether the strides are those of a new tensor: stricter than is_contiguous(), which ignores
// dimensions of size 1.
inline bool has_plain_strides(const Tensor& tensor) {
  const int64_t *sizes = tensor.sizes(), *strides = tensor.strides();
  int64_t expected = 1;
  for (int64_t d = tensor.dims() - 1; d >= 0; --d) {
    if (strides[d] != expected) return false;
    expected *= std::max<int64_t>(sizes[d], 1);
  }
  return tensor.dims() <= max_dims;
}

// `dense(out, n)` is called where every operand is one run of n elements, otherwise `strided(out,
// layout)`; neither for an output without elements. `b` is null for an op of one tensor.
template <typename Dense, typename Strided>
Tensor fill_output(const char* op, const Tensor& a, const Tensor* b, Dense&& dense,
                   Strided&& strided) {
  if (has_plain_strides(a) && (!b || (b->is_contiguous() && is_same_shape(a, *b)))) {
    Tensor out = empty_strided(a, a.dims(), a.sizes(), a.strides());
    if (const int64_t n = a.numel()) dense(out.mutable_data(), n);
    return out;
  }
  const Layout layout = checked_layout(op, a, b);
  Tensor out = empty_strided(a, layout.out_dims, layout.out_sizes, layout.out_strides);
  if (layout.numel == 0) return out;
  if (layout.is_dense()) {
    dense(out.mutable_data(), layout.numel);
  } else {
    strided(out.mutable_data(), layout);
  }
  return out;
}

}  // namespace cuda_ext
