// rms_norm as a row op: out = x / sqrt(mean(x^2) + eps) * weight.
#pragma once

#include <cmath>
#include <limits>

#include "add.h"
#include "opwright/rows.h"

namespace opwright {

struct rms_norm {
  static constexpr const char* number = "eps";
  static constexpr DTypes dtypes = floating_dtypes;
  using Add = my_fast_add;

  // torch's own default: the gap between 1 and the next larger number.
  template <typename C>
  static constexpr C default_number = std::numeric_limits<C>::epsilon();

  // A row's state is rstd = 1 / sqrt(mean(x^2) + eps).
  template <typename C>
  struct Forward {
    static constexpr int inputs = 1, outputs = 1;
    static constexpr Added added = Added::to_input;
    using State = C;
    C one_over_size, eps;

    explicit Forward(const RowProblem& problem)
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
  struct Backward {
    static constexpr int inputs = 2, outputs = 1;  // grad, x; rstd is given
    static constexpr Added added = Added::to_output;
    struct State {
      C rstd, correction;
    };
    C one_over_size;

    explicit Backward(const RowProblem& problem)
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
};
OPWRIGHT_ROWS(rms_norm)

}  // namespace opwright
