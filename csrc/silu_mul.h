// silu_mul (SwiGLU): out = x / (1 + exp(-x)) * y.
#pragma once

#include <cmath>

#include "opwright/elementwise.h"

namespace opwright {

// What forward and backward compute of one element.
template <typename C>
struct SiluMul {
  OPWRIGHT_FUNCTION C operator()(C x, C y) const { return x / (1 + std::exp(-x)) * y; }
  // The gradients of x and y, by that of the result.
  OPWRIGHT_FUNCTION void gradients(C grad, C x, C y, C& grad_x, C& grad_y) const {
    const C s = 1 / (1 + std::exp(-x));
    grad_x = grad * y * s * (1 + x * (1 - s));
    grad_y = grad * x * s;
  }
};

struct silu_mul {
  static constexpr const char* schema = "silu_mul(Tensor x, Tensor y) -> Tensor";
  static constexpr DTypes dtypes = floating_dtypes;

  template <typename C>
  using Function = SiluMul<C>;
};
OPWRIGHT_ELEMENTWISE(silu_mul)

constexpr const char* silu_mul_backward_schema =
    "_silu_mul_backward(Tensor grad, Tensor x, Tensor y) -> (Tensor, Tensor)";

}  // namespace opwright
