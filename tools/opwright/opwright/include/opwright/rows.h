// Row ops: what a function object says of one, and what the kernels are told. No torch here.
//
// A row op sums a term over each row of its inputs, makes the row's state of the sum, and then each
// element of its outputs. It may also sum over the rows, for each column. As a function object of
// the type C that elements are computed in:
//
//   static constexpr int inputs = 1, outputs = 1;
//   static constexpr Added added = Added::nowhere;          // where one more tensor may be added
//   using State = C;                                        // what the elements of a row share
//   C term(const C* in, C weight) const;                    // summed over the row
//   State finish(C sum, C given) const;                     // `given` is the row's number, if any
//   void apply(const C* in, C weight, State, C* out) const; // one element of each output
//   C column(const C* in, C given) const;                   // summed over the rows, or nothing
//
// The engines give it every length, alignment and stride of the rows: row_kernels.cuh on CUDA,
// rows_cpu.h on the CPU. Nothing is summed by atomics: the same inputs give the same bits in every
// run.
#pragma once

#include "element.h"
#include "layout.h"

#if defined(OPWRIGHT_WITH_CUDA)
#include "stream.h"
#endif

namespace opwright {

constexpr int max_row_inputs = 3, max_row_outputs = 2;

// What a tensor that comes with a call, such as a residual, is added to: the first input before
// anything else, where the sum is rounded and is a result too, or the first output.
enum class Added { nowhere, to_input, to_output };

// A row's elements lie side by side; rows lie anywhere (`rows` walks them). Results are contiguous.
struct RowProblem {
  DType dtype;       // of inputs and outputs
  bool wide_weight;  // the weight is of the type that is computed in, where T is narrower
  int64_t size;      // of a row
  Layout rows;
  const void* in[max_row_inputs] = {};
  const void* weight = nullptr;     // one element per column, 16-byte aligned; null: all ones
  const void* given = nullptr;      // one number per row; null: none
  void* out[max_row_outputs] = {};  // null where nobody needs it
  void* row_out = nullptr;          // the state of each row; null where nobody needs it
  void* column_out = nullptr;       // of the weight's type; null where nobody needs it
  void* partial = nullptr;          // room for partial sums of the columns
  const void* added = nullptr;      // contiguous; null: nothing is added
  void* sum = nullptr;              // where the first input with `added` goes
  double weight_offset = 0;         // is added to the weight, which must not be narrow then
  double number = 0;                // the op's own
};

namespace cpu {
// The CPU divides the rows into as many parts and sums each in float64: `partial` holds that many
// rows of float64.
constexpr int64_t column_parts = 64;
}  // namespace cpu

template <typename T>
using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;

// Calls `use(T{}, W{})` with the types of the elements and of the weight.
template <uint32_t dtypes, typename Result, typename Use>
inline __attribute__((always_inline)) Result with_row_types(const RowProblem& problem, Use&& use) {
  return with_element_type<dtypes, Result>(problem.dtype,
                                           [&](auto element) __attribute__((always_inline)) {
                                             using T = decltype(element);
                                             if constexpr (!std::is_same_v<T, Wide<T>>) {
                                               if (problem.wide_weight)
                                                 return use(element, Wide<T>{});
                                             }
                                             return use(element, element);
                                           });
}

}  // namespace opwright
