// silu_mul, the gate of SwiGLU: out = x / (1 + exp(-x)) * y, and its gradients in one pass.
#pragma once

#include <cmath>

#include "opwright/elementwise.h"

namespace opwright {

// 1 / (1 + exp(-x)), to two units in the last place.
template <typename C>
OPWRIGHT_FUNCTION C sigmoid(C x) {
#if defined(__CUDA_ARCH__)
  if constexpr (std::is_same_v<C, float>) {
    float result;
    asm("rcp.approx.f32 %0, %1;" : "=f"(result) : "f"(1 + expf(-x)));
    return result;
  }
  return 1 / (1 + exp(static_cast<double>(-x)));
#else
  return 1 / (2 + std::expm1(-x));  // exp would need glibc 2.29, too new for the wheel
#endif
}

struct silu_mul {
  static constexpr const char* schema = "silu_mul(Tensor x, Tensor y) -> Tensor";
  static constexpr DTypes dtypes = floating_dtypes;
  static constexpr bool has_few_kernels = true;

  template <typename C>
  struct Function {
    OPWRIGHT_FUNCTION C operator()(C x, C y) const { return x * sigmoid(x) * y; }
  };
};

struct _silu_mul_backward {
  static constexpr const char* schema =
      "_silu_mul_backward(Tensor grad, Tensor x, Tensor y) -> (Tensor, Tensor)";
  static constexpr DTypes dtypes = floating_dtypes;
  static constexpr bool has_few_kernels = true;

  template <typename C>
  struct Function {
    OPWRIGHT_FUNCTION Pair<C> operator()(C grad, C x, C y) const {
      const C s = sigmoid(x);
      return {grad * y * (s * (1 + x * (1 - s))), grad * (x * s)};
    }
  };
};

OPWRIGHT_ELEMENTWISE(silu_mul)
OPWRIGHT_ELEMENTWISE(_silu_mul_backward)

}  // namespace opwright
