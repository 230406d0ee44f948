// Allocates an op's output and picks the kernel's path: one dense run of elements, or a strided
// walk.
#pragma once

#include <algorithm>
#include <functional>
#include <numeric>

#include "arguments.h"

namespace cuda_ext {

// Whether the strides are those of a new tensor, also in dimensions of size 1.
inline bool has_plain_strides(const Tensor& tensor) {
  int64_t expected = 1;
  for (int64_t d = tensor.dims - 1; d >= 0; --d) {
    if (tensor.strides[d] != expected) return false;
    expected *= std::max<int64_t>(tensor.sizes[d], 1);
  }
  return tensor.dims <= max_dims;
}

inline bool is_laid_out_as(const Tensor& a, const Tensor& b) {
  return a.dims == b.dims && std::equal(a.sizes, a.sizes + a.dims, b.sizes) &&
         std::equal(a.strides, a.strides + a.dims, b.strides);
}

inline int64_t element_count(const Tensor& tensor) {
  return std::accumulate(tensor.sizes, tensor.sizes + tensor.dims, int64_t{1}, std::multiplies<>());
}

// `dense(out, n)` is called where every operand is one run of n elements, otherwise `strided(out,
// layout)`; neither for an output without elements. `b` is null for an op of one tensor.
template <typename Dense, typename Strided>
NewTensor fill_output(const char* op, const Tensor& a, const Tensor* b, Dense&& dense,
                      Strided&& strided) {
  if (has_plain_strides(a) && (!b || is_laid_out_as(a, *b))) {
    NewTensor out(a, a.dims, a.sizes, a.strides);
    if (const int64_t n = element_count(a)) dense(out.data(), n);
    return out;
  }
  const Layout layout = checked_layout(op, a, b);
  NewTensor out(a, layout.out_dims, layout.out_sizes, layout.out_strides);
  if (layout.numel == 0) return out;
  if (layout.is_dense()) {
    dense(out.data(), layout.numel);
  } else {
    strided(out.data(), layout);
  }
  return out;
}

}  // namespace cuda_ext
