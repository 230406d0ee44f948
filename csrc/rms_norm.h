// rms_norm's kernels: out = x / sqrt(mean(x^2) + eps) * weight, over rows of `size` elements. No
// torch here.
//
// Statistics and sums are in float32, for float64 in float64. Nothing is summed by atomics: the
// same inputs give the same bits in every run.
#pragma once

#include "opwright/element.h"
#include "opwright/layout.h"

#if defined(OPWRIGHT_WITH_CUDA)
#include "opwright/stream.h"
#endif

namespace opwright {

constexpr DTypes rms_norm_dtypes = floating_dtypes;

// A row's elements may lie apart (`stride`), and rows anywhere (`rows` walks them). Results are
// contiguous.
struct RmsNorm {
  DType dtype;
  int64_t size;
  Layout rows;  // of x
  const void* x;
  int64_t x_stride;
  const void* weight;  // null: all ones
  int64_t weight_stride;
  double eps;
  void* out;
  void* rstd;  // 1 / sqrt(mean(x^2) + eps) of each row; null where nobody needs it
};

struct RmsNormBackward {
  DType dtype;
  int64_t size;
  Layout rows;  // of grad, and of x
  const void *grad, *x;
  int64_t grad_stride, x_stride;
  const void* weight;
  int64_t weight_stride;
  const void* rstd;
  void* grad_x;       // null where nobody needs it
  void* grad_weight;  // likewise
  void* partial;      // room for the weight gradient's partial sums: see partial_sums()
};

#if defined(OPWRIGHT_WITH_CUDA)
cudaError_t rms_norm(const RmsNorm& problem, Stream stream);
cudaError_t rms_norm_backward(const RmsNormBackward& problem, Stream stream);

// How many rows of `size` float32 (float64) values `partial` must hold.
int64_t partial_sums(const RmsNormBackward& problem, Stream stream);
#endif

namespace cpu {

// The rows [begin, end).
void rms_norm(const RmsNorm& problem, int64_t begin, int64_t end);

// The work of one of the `partial_sums` parts that the rows are divided into, and then the sum over
// the parts for the columns [begin, end).
constexpr int64_t partial_sums = 64;
void rms_norm_backward(const RmsNormBackward& problem, int64_t part);
void sum_partials(const RmsNormBackward& problem, int64_t begin, int64_t end);

}  // namespace cpu

}  // namespace opwright
