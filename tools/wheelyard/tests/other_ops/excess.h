// excess: out = a - b where that is positive, else 0.
#pragma once

#include "opwright/elementwise.h"

namespace opwright {

struct excess {
  static constexpr const char* schema = "excess(Tensor a, Tensor b) -> Tensor";
  static constexpr DTypes dtypes = floating_dtypes;

  template <typename C>
  struct Function {
    OPWRIGHT_FUNCTION C operator()(C a, C b) const { return a - b < C(0) ? C(0) : a - b; }
  };
};
OPWRIGHT_ELEMENTWISE(excess)

}  // namespace opwright
