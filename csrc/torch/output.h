// Allocates an op's output and picks the kernel's path: one dense run of elements, or a strided walk.
#pragma once

#include <algorithm>

#include "arguments.h"

namespace cuda_ext {

inline bool is_same_shape(const Tensor& a, const Tensor& b) {
  return a.dims() == b.dims() && std::equal(a.sizes(), a.sizes() + a.dims(), b.sizes());
}

inline Tensor empty_contiguous(const Tensor& like) {
  const int64_t dims = like.dims(), *sizes = like.sizes();
  int64_t strides[max_dims], stride = 1;
  for (int64_t d = dims - 1; d >= 0; --d) {
    strides[d] = stride;
    stride *= std::max<int64_t>(sizes[d], 1);
  }
  return empty_strided(like, dims, sizes, strides);
}

// `dense(out, n)` is called where every operand is one run of n elements, otherwise `strided(out, layout)`; neither
// for an output without elements. `b` is null for an op of one tensor.
template <typename Dense, typename Strided>
Tensor fill_output(const char* op, const Tensor& a, const Tensor* b, Dense&& dense, Strided&& strided) {
  if (a.dims() <= max_dims && a.is_contiguous() && (!b || (b->is_contiguous() && is_same_shape(a, *b)))) {
    Tensor out = empty_contiguous(a);
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
