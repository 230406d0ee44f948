// my_fast_add: out = a + b at the speed of memory.
#pragma once

#include "kernels/elementwise.h"

namespace cuda_ext {

struct my_fast_add {
  static constexpr const char* schema = "my_fast_add(Tensor a, Tensor b) -> Tensor";
  static constexpr DTypes dtypes = every_dtype;

  template <typename C>
  struct Function {
    CUDA_EXT_FUNCTION C operator()(C a, C b) const { return plus(a, b); }
  };
};
CUDA_EXT_ELEMENTWISE(my_fast_add)

}  // namespace cuda_ext
