// my_add and my_fast_add: out = a + b.
//
// my_add is the op to read first: one element per thread if the tensors are dense. my_fast_add uses
// the engine's kernels for that too, which run at the speed of memory.
#pragma once

#include "opwright/elementwise.h"

#if defined(__CUDACC__)
#include "opwright/launch.cuh"
#endif

namespace opwright {

struct my_fast_add {
  static constexpr const char* schema = "my_fast_add(Tensor a, Tensor b) -> Tensor";
  static constexpr DTypes dtypes = every_dtype;
  static constexpr bool ignores_sign = true;

  template <typename C>  // the type in which an element is computed
  struct Function {
    template <typename N>  // C, or several elements at once
    OPWRIGHT_FUNCTION N operator()(N a, N b) const {
      return plus(a, b);
    }
  };
};

#if defined(__CUDACC__)
template <typename T>
__global__ void my_add_kernel(const T* a, const T* b, T* out, int64_t n) {
  const int64_t i = thread_index();
  if (i < n) out[i] = store<T>(plus(load(a[i]), load(b[i])));
}
#endif

struct my_add {
  static constexpr const char* schema = "my_add(Tensor a, Tensor b) -> Tensor";
  static constexpr DTypes dtypes = every_dtype;
  static constexpr bool ignores_sign = true;

  template <typename C>
  using Function = my_fast_add::Function<C>;
  using OtherLayouts = my_fast_add;

#if defined(__CUDACC__)
  template <typename T>
  static cudaError_t dense(const Operands& operands, int64_t n, Stream stream) {
    return launch<my_add_kernel<T>>(grid_of(n), stream, static_cast<const T*>(operands.in[0]),
                                    static_cast<const T*>(operands.in[1]),
                                    static_cast<T*>(operands.out[0]), n);
  }
#endif
};

OPWRIGHT_ELEMENTWISE(my_fast_add)
OPWRIGHT_ELEMENTWISE(my_add)

}  // namespace opwright
