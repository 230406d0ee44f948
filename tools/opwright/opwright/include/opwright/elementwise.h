// Elementwise ops: how an extension's header declares one, and the kernels' interface. No torch
// here.
//
// An op is a struct with a schema, the dtypes it takes, and a function object:
//
//   struct scale_add {
//     static constexpr const char* schema = "scale_add(Tensor a, Tensor b, float alpha) -> Tensor";
//     static constexpr DTypes dtypes = floating_dtypes;
//
//     template <typename C>  // the type in which an element is computed
//     struct Function {
//       C alpha;
//       OPWRIGHT_FUNCTION C operator()(C a, C b) const { return a + alpha * b; }
//     };
//   };
//   OPWRIGHT_ELEMENTWISE(scale_add)
//
// The schema's tensors are the function's arguments; its numbers (int, float) follow them and are
// the function object's members, in that order. If the schema returns two tensors, the function
// returns a Pair<C>. A function that takes arguments of any type may be called with several small
// integers at once: see Packed in element.h. The engines handle every layout: elementwise.cuh on
// CUDA, elementwise_cpu.h on the CPU. CMake compiles each header that has the macro with both.
#pragma once

#include <cstdint>
#include <utility>

#include "element.h"
#include "layout.h"
#include "schema.h"

#if defined(OPWRIGHT_WITH_CUDA)
#include "stream.h"
#endif

namespace opwright {

constexpr int max_outputs = 2;

struct Operands {
  const void* in[max_inputs];
  void* out[max_outputs];
};

// The two results for one element.
template <typename C>
struct Pair {
  C first, second;
};

template <typename Op>
constexpr int inputs_of = read_schema(Op::schema).of(Kind::tensor);
template <typename Op>
constexpr int outputs_of = read_schema(Op::schema).results;
template <typename Op>
constexpr int numbers_of = read_schema(Op::schema).count - inputs_of<Op>;

// Whether the op makes its function object from the numbers itself: `make<C>(numbers...)`.
template <typename Op, typename = void>
constexpr bool makes_function = false;
template <typename Op>
constexpr bool makes_function<Op, std::void_t<decltype(&Op::template make<Complex<float>>)>> = true;

// Makes the op's function object for elements computed as C; `convert` turns a Scalar into a C.
template <typename Op, typename C, typename Convert, size_t... I>
inline __attribute__((always_inline)) auto make_function(const Scalar* numbers, Convert&& convert,
                                                         std::index_sequence<I...>) {
  (void)numbers, (void)convert;
  if constexpr (makes_function<Op>) {
    return Op::template make<C>(convert(numbers[I])...);
  } else {
    return typename Op::template Function<C>{convert(numbers[I])...};
  }
}
template <typename Op, typename C, typename Convert>
inline __attribute__((always_inline)) auto make_function(const Scalar* numbers, Convert&& convert) {
  return make_function<Op, C>(numbers, convert, std::make_index_sequence<numbers_of<Op>>{});
}

// An op may bring its own CUDA kernel for dense tensors, `dense<T>(operands, n, stream)`. It then
// names an op with the same arithmetic whose kernels do the rest: `using OtherLayouts = ...`.
template <typename Op, typename = void>
constexpr bool has_own_dense = false;
template <typename Op>
constexpr bool has_own_dense<Op, std::void_t<typename Op::OtherLayouts>> = true;

// An op with a long function may set `static constexpr bool has_few_kernels = true`: it then has
// at most two kernels on CUDA instead of five: one for aligned rows, including dense tensors, of
// elements up to four bytes, and one for everything else.
template <typename Op, typename = void>
constexpr bool has_few_kernels = false;
template <typename Op>
constexpr bool has_few_kernels<Op, std::void_t<decltype(Op::has_few_kernels)>> =
    Op::has_few_kernels;

// An op that computes the same bits for int8 as for uint8 may set `static constexpr bool
// ignores_sign = true`: one kernel then serves both.
template <typename Op, typename T, typename = void>
struct KernelElement {
  using Type = T;
};
template <typename Op>
struct KernelElement<Op, int8_t, std::enable_if_t<Op::ignores_sign>> {
  using Type = uint8_t;
};

// Computes the output elements [begin, end), so that the caller's thread pool can divide the work.
#define OPWRIGHT_ON_CPU(op)                                                     \
  void on_cpu(op, DType dtype, const Operands& operands, const Scalar* numbers, \
              const Layout& layout, int64_t begin, int64_t end)

// Launches the computation of all elements on `stream`. Never synchronises; returns the launch's
// error and leaves none pending.
#define OPWRIGHT_ON_CUDA(op)                                                            \
  cudaError_t on_cuda(op, DType dtype, const Operands& operands, const Scalar* numbers, \
                      const Layout& layout, Stream stream)

// Declares the op's kernels; the engines define what they compile.
#if !defined(OPWRIGHT_DEFINE)
#define OPWRIGHT_DEFINE(op)
#endif
#define OPWRIGHT_CHECK_SCHEMA(op)                                                              \
  static_assert(check_elementwise_schema<op>());                                               \
  static_assert(is_schema_of(op::schema, #op),                                                 \
                "the schema's name differs from the struct's: `cust_add.int(...)` belongs to " \
                "cust_add_int");
#if defined(OPWRIGHT_WITH_CUDA)
#define OPWRIGHT_ELEMENTWISE(op) \
  OPWRIGHT_CHECK_SCHEMA(op)      \
  OPWRIGHT_ON_CPU(op);           \
  OPWRIGHT_ON_CUDA(op);          \
  OPWRIGHT_DEFINE(op)
#else
#define OPWRIGHT_ELEMENTWISE(op) \
  OPWRIGHT_CHECK_SCHEMA(op)      \
  OPWRIGHT_ON_CPU(op);           \
  OPWRIGHT_DEFINE(op)
#endif

}  // namespace opwright
