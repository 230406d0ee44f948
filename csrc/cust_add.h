// cust_add: out = x + value, for a Python number.
//
// The stable ABI has no Scalar, so each kind of number has an overload, and the overload for any
// number, written in Python, calls them. torch tries overloads in order. Any number comes first,
// because each mismatch takes longer than the call; int comes last, because it also matches what is
// no int, such as NumPy's float32, and cuts it off. A SymInt is an int that may be a size that
// torch.compile leaves open.
#pragma once

#include "opwright/elementwise.h"

namespace opwright {

struct cust_add_int {
  static constexpr const char* schema = "cust_add.int(Tensor x, SymInt value) -> Tensor";
  static constexpr DTypes dtypes = every_dtype;
  static constexpr bool ignores_sign = true;

  template <typename C>
  struct Function {
    C value;
    template <typename N>  // C, or several elements at once
    OPWRIGHT_FUNCTION N operator()(N x) const {
      return plus(x, N(value));
    }
  };
};

struct cust_add_float {
  static constexpr const char* schema_before = "cust_add.Tensor(Tensor x, Tensor value) -> Tensor";
  static constexpr const char* schema = "cust_add.float(Tensor x, float value) -> Tensor";
  static constexpr DTypes dtypes = floating_dtypes | complex_dtypes;
  static constexpr const char* refusal =
      "a float value cannot be added to a {} tensor without changing its dtype; pass an int, or "
      "convert the tensor with .to()";

  template <typename C>
  using Function = cust_add_int::Function<C>;
};

struct cust_add_complex {
  static constexpr const char* schema_before = "cust_add(Tensor x, Scalar value) -> Tensor";
  static constexpr const char* schema =
      "cust_add.complex(Tensor x, float real, float imag) -> Tensor";
  static constexpr DTypes dtypes = complex_dtypes;
  static constexpr const char* refusal =
      "a complex value cannot be added to a {} tensor without changing its dtype; convert the "
      "tensor with .to(torch.complex64)";

  template <typename C>
  using Function = cust_add_int::Function<C>;

  // Two numbers of the schema make one of the function, so this overload shares its kernels with
  // those above.
  template <typename C>
  static Function<C> make(C real, C imag) {
    return {C{real.real, imag.real}};
  }
};

OPWRIGHT_ELEMENTWISE(cust_add_complex)
OPWRIGHT_ELEMENTWISE(cust_add_float)
OPWRIGHT_ELEMENTWISE(cust_add_int)

}  // namespace opwright
