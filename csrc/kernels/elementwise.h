// Elementwise ops: what a file in ops/ says of one, and the kernels' interface. No torch here.
//
// An op is a struct with a schema, the dtypes it takes, and a function object:
//
//   struct scale_add {
//     static constexpr const char* schema = "scale_add(Tensor a, Tensor b, float alpha) -> Tensor";
//     static constexpr DTypes dtypes = floating_dtypes;
//
//     template <typename C>  // the type an element is computed in
//     struct Function {
//       C alpha;
//       CUDA_EXT_FUNCTION C operator()(C a, C b) const { return a + alpha * b; }
//     };
//   };
//   CUDA_EXT_ELEMENTWISE(scale_add)
//
// The schema's tensors are the function's arguments; its numbers (int, float) follow them and are
// the function object's members, in that order. The engines give it every layout: elementwise.cuh
// on CUDA, elementwise_cpu.h on the CPU. CMake compiles each file of ops/ with both.
#pragma once

#include <cstdint>
#include <utility>

#include "element.h"
#include "layout.h"

#if defined(CUDA_EXT_WITH_CUDA)
#include "stream.h"
#endif

namespace cuda_ext {

struct Operands {
  const void* in[max_inputs];
  void* out;
};

template <typename Function, typename C, typename... Arguments>
constexpr int arity(C (Function::*)(Arguments...) const) {
  return sizeof...(Arguments);
}

// How many tensors the op takes.
template <typename Op>
constexpr int inputs_of = arity(decltype(&Op::template Function<float>::operator()){nullptr});

// How many numbers follow them: one for each further comma of the schema.
template <typename Op>
constexpr int numbers_of = [] {
  int arguments = 1;
  for (const char* at = Op::schema; *at != ')'; ++at) arguments += *at == ',';
  return arguments - inputs_of<Op>;
}();

// The op's function object for elements that are computed as C; `convert` makes a C of a Scalar.
template <typename Op, typename C, typename Convert, size_t... I>
inline __attribute__((always_inline)) auto make_function(const Scalar* numbers, Convert&& convert,
                                                         std::index_sequence<I...>) {
  (void)numbers, (void)convert;
  return typename Op::template Function<C>{convert(numbers[I])...};
}
template <typename Op, typename C, typename Convert>
inline __attribute__((always_inline)) auto make_function(const Scalar* numbers, Convert&& convert) {
  return make_function<Op, C>(numbers, convert, std::make_index_sequence<numbers_of<Op>>{});
}

// The elements [begin, end) of the output, so that the caller's thread pool can divide the work.
#define CUDA_EXT_ON_CPU(op)                                                     \
  void on_cpu(op, DType dtype, const Operands& operands, const Scalar* numbers, \
              const Layout& layout, int64_t begin, int64_t end)

// All elements, launched on `stream`. Never synchronises; returns the launch's error, which is no
// longer pending then.
#define CUDA_EXT_ON_CUDA(op)                                                            \
  cudaError_t on_cuda(op, DType dtype, const Operands& operands, const Scalar* numbers, \
                      const Layout& layout, Stream stream)

// Declares the op's kernels; the engines define what they compile.
#if !defined(CUDA_EXT_DEFINE)
#define CUDA_EXT_DEFINE(op)
#endif
#if defined(CUDA_EXT_WITH_CUDA)
#define CUDA_EXT_ELEMENTWISE(op) \
  CUDA_EXT_ON_CPU(op);           \
  CUDA_EXT_ON_CUDA(op);          \
  CUDA_EXT_DEFINE(op)
#else
#define CUDA_EXT_ELEMENTWISE(op) \
  CUDA_EXT_ON_CPU(op);           \
  CUDA_EXT_DEFINE(op)
#endif

}  // namespace cuda_ext
