// mean_norm, a row op: out = x / (mean(|x|) + eps) * weight.
#pragma once

#include "opwright/elementwise.h"
#include "opwright/rows.h"

namespace opwright {

struct plain_add {
  static constexpr const char* schema = "plain_add(Tensor a, Tensor b) -> Tensor";
  static constexpr DTypes dtypes = floating_dtypes;

  template <typename C>
  struct Function {
    OPWRIGHT_FUNCTION C operator()(C a, C b) const { return a + b; }
  };
};
OPWRIGHT_ELEMENTWISE(plain_add)

struct mean_norm {
  static constexpr const char* number = "eps";
  static constexpr DTypes dtypes = floating_dtypes;
  using Add = plain_add;
  template <typename C>
  static constexpr C default_number = 0;

  // A row's state is scale = 1 / (mean(|x|) + eps).
  template <typename C>
  struct Forward {
    static constexpr int inputs = 1, outputs = 1;
    static constexpr Added added = Added::to_input;
    using State = C;
    C size, eps;

    explicit Forward(const RowProblem& problem)
        : size(static_cast<C>(problem.size)), eps(static_cast<C>(problem.number)) {}

    OPWRIGHT_FUNCTION C term(const C* x, C) const { return *x < 0 ? -*x : *x; }
    OPWRIGHT_FUNCTION C finish(C sum, C) const { return 1 / (sum / size + eps); }
    OPWRIGHT_FUNCTION void apply(const C* x, C weight, C scale, C* out) const {
      *out = *x * scale * weight;
    }
  };

  // grad_x = scale * (grad * weight - sign(x) * mean(grad * weight * x * scale))
  template <typename C>
  struct Backward {
    static constexpr int inputs = 2, outputs = 1;
    static constexpr Added added = Added::to_output;
    struct State {
      C scale, correction;
    };
    C size;

    explicit Backward(const RowProblem& problem) : size(static_cast<C>(problem.size)) {}

    OPWRIGHT_FUNCTION C term(const C* in, C weight) const { return in[0] * weight * in[1]; }
    OPWRIGHT_FUNCTION State finish(C sum, C scale) const {
      return {scale, sum / size * scale * scale};
    }
    OPWRIGHT_FUNCTION void apply(const C* in, C weight, State row, C* out) const {
      const C sign = static_cast<C>((in[1] > 0) - (in[1] < 0));
      *out = in[0] * row.scale * weight - sign * row.correction;
    }
    OPWRIGHT_FUNCTION C column(const C* in, C scale) const { return in[0] * scale * in[1]; }
  };
};
OPWRIGHT_ROWS(mean_norm)

}  // namespace opwright
