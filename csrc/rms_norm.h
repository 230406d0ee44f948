// rms_norm as row ops: out = x / sqrt(mean(x^2) + eps) * weight. With a residual, x is the sum of
// both, which is a result too.
//
// Statistics and sums are in float32, for float64 in float64.
#pragma once

#include <cmath>

#include "opwright/rows.h"

namespace opwright {

constexpr DTypes rms_norm_dtypes = floating_dtypes;

// The row's state is rstd = 1 / sqrt(mean(x^2) + eps).
template <typename C>
struct RmsNorm {
  static constexpr int inputs = 1, outputs = 1;
  static constexpr Added added = Added::to_input;
  using State = C;
  C one_over_size, eps;

  explicit RmsNorm(const RowProblem& problem)
      : one_over_size(C(1) / static_cast<C>(problem.size)), eps(static_cast<C>(problem.number)) {}

  OPWRIGHT_FUNCTION C term(const C* x, C) const { return *x * *x; }
  OPWRIGHT_FUNCTION C finish(C sum, C) const {
    const C square = sum * one_over_size + eps;
#if defined(__CUDA_ARCH__)
    if constexpr (std::is_same_v<C, float>) return rsqrtf(square);
    return rsqrt(static_cast<double>(square));
#else
    return 1 / std::sqrt(square);
#endif
  }
  OPWRIGHT_FUNCTION void apply(const C* x, C weight, C rstd, C* out) const {
    *out = *x * rstd * weight;
  }
};

// With h = x * rstd:  grad_x = rstd * (grad * weight - h * mean(grad * weight * h)),
//                     grad_weight = the sum of grad * h over the rows.
template <typename C>
struct RmsNormBackward {
  static constexpr int inputs = 2, outputs = 1;  // grad, x; rstd is given
  static constexpr Added added = Added::to_output;
  struct State {
    C rstd, correction;
  };
  C one_over_size;

  explicit RmsNormBackward(const RowProblem& problem)
      : one_over_size(C(1) / static_cast<C>(problem.size)) {}

  OPWRIGHT_FUNCTION C term(const C* in, C weight) const { return in[0] * weight * in[1]; }
  OPWRIGHT_FUNCTION State finish(C sum, C rstd) const {
    return {rstd, sum * one_over_size * rstd * rstd * rstd};
  }
  OPWRIGHT_FUNCTION void apply(const C* in, C weight, State row, C* out) const {
    *out = in[0] * row.rstd * weight - in[1] * row.correction;
  }
  OPWRIGHT_FUNCTION C column(const C* in, C rstd) const { return in[0] * rstd * in[1]; }
};

// The problem's number is eps.
#if defined(OPWRIGHT_WITH_CUDA)
cudaError_t rms_norm(const RowProblem& problem, Stream stream);
cudaError_t rms_norm_backward(const RowProblem& problem, Stream stream);

// Whether they add what `problem.added` names; elsewhere it must be null.
bool rms_norm_adds(const RowProblem& problem);
bool rms_norm_backward_adds(const RowProblem& problem);

// How many rows of `size` float32 (float64) values rms_norm_backward's `partial` must hold.
int64_t rms_norm_partials(const RowProblem& problem, Stream stream);
#endif

namespace cpu {

// The rows [begin, end).
void rms_norm(const RowProblem& problem, int64_t begin, int64_t end);

// One of the `column_parts` parts that the rows are divided into, and then the sum over the parts
// for the columns [begin, end).
void rms_norm_backward(const RowProblem& problem, int64_t part);
void rms_norm_sum_parts(const RowProblem& problem, int64_t begin, int64_t end);

}  // namespace cpu

}  // namespace opwright
