// scale_add: out = a + alpha * b.
#pragma once

#include "opwright/elementwise.h"

namespace opwright {

struct scale_add {
  static constexpr const char* schema = "scale_add(Tensor a, Tensor b, float alpha) -> Tensor";
  static constexpr DTypes dtypes = floating_dtypes;

  template <typename C>  // the type in which an element is computed
  struct Function {
    C alpha;
    OPWRIGHT_FUNCTION C operator()(C a, C b) const { return a + alpha * b; }
  };
};
OPWRIGHT_ELEMENTWISE(scale_add)

}  // namespace opwright
