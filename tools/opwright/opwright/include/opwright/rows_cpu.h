// The CPU engine for row ops: plain loops that compilers vectorise. rows.h describes an op.
#pragma once

#include <algorithm>

#include "every_cpu.h"
#include "float16.h"

#define OPWRIGHT_DEFINE_ROWS(op)                    \
  OPWRIGHT_EVERY_CPU OPWRIGHT_FORWARD_ON_CPU(op) {  \
    cpu::compute_rows<op>(problem, begin, end);     \
  }                                                 \
  OPWRIGHT_EVERY_CPU OPWRIGHT_BACKWARD_ON_CPU(op) { \
    cpu::compute_part<op>(problem, part);           \
  }                                                 \
  OPWRIGHT_EVERY_CPU OPWRIGHT_SUM_ON_CPU(op) {      \
    cpu::sum_parts<op>(problem, begin, end);        \
  }
#include "rows.h"

namespace opwright::cpu {

// Calls `use(T{}, W{})` with the types of the elements and of the weight.
template <typename Op, typename Use>
OPWRIGHT_INLINE void with_row_types(const RowProblem& problem, Use&& use) {
  with_element_type<Op::dtypes.bits, void>(problem.dtype,
                                           [&](auto element) __attribute__((always_inline)) {
                                             using C = Compute<decltype(element)>;
                                             if constexpr (!std::is_same_v<decltype(element), C>) {
                                               if (problem.wide_weight) return use(element, C{});
                                             }
                                             use(element, element);
                                           });
}

// The sum of `term(i)` over a row. Blocks are summed in eight interleaved parts, which vectorise,
// and then in pairs of equal length, so that rounding errors grow with the logarithm of the length.
template <typename Number, typename Term>
OPWRIGHT_INLINE Number sum_row(int64_t size, Term&& term) {
  constexpr int64_t block = 512;
  Number pending[64];  // the sum of 2^level blocks, if the number of blocks so far has that bit
  int64_t blocks = 0;
  for (int64_t begin = 0; begin < size; begin += block, ++blocks) {
    const int64_t end = std::min(begin + block, size);
    Number parts[8] = {};
    int64_t i = begin;
    for (; i + 8 <= end; i += 8) {
      for (int p = 0; p < 8; ++p) parts[p] += term(i + p);
    }
    for (; i < end; ++i) parts[0] += term(i);
    Number sum = ((parts[0] + parts[4]) + (parts[1] + parts[5])) +
                 ((parts[2] + parts[6]) + (parts[3] + parts[7]));
    int level = 0;
    for (; blocks >> level & 1; ++level) sum += pending[level];
    pending[level] = sum;
  }
  Number sum = 0;
  for (int level = 0; blocks >> level; ++level) {
    if (blocks >> level & 1) sum += pending[level];
  }
  return sum;
}

// Computes one row; `columns` holds the column sums of the row's part, or is null.
template <typename T, typename W, typename Function>
OPWRIGHT_INLINE void compute_row(const Function& function, const RowProblem& problem, int64_t row,
                                 double* columns) {
  using C = Compute<T>;
  constexpr int inputs = Function::inputs, outputs = Function::outputs;
  const T* in[inputs];
  for (int i = 0; i < inputs; ++i) {
    int64_t offset = 0, rest = row;
    for (int d = 0; d < problem.rows.dims; ++d) {
      offset += rest % problem.rows.sizes[d] * problem.rows.strides[i][d];
      rest /= problem.rows.sizes[d];
    }
    in[i] = static_cast<const T*>(problem.in[i]) + offset;
  }
  const T* added =
      problem.added ? static_cast<const T*>(problem.added) + row * problem.size : nullptr;
  if (Function::added == Added::to_input && added) {
    T* sum = static_cast<T*>(problem.sum) + row * problem.size;
    for (int64_t i = 0; i < problem.size; ++i)
      sum[i] = Store<T>::from(load(in[0][i]) + load(added[i]));
    in[0] = sum;
  }
  const W* weight = static_cast<const W*>(problem.weight);
  const C given = problem.given ? static_cast<const C*>(problem.given)[row] : C(0);
  const int64_t size = problem.size;
  struct Elements {
    C in[inputs];
  };
  const auto at = [&](int64_t i) __attribute__((always_inline)) {
    Elements elements;
    for (int k = 0; k < inputs; ++k) elements.in[k] = load(in[k][i]);
    return elements;
  };
  const auto factor = [&](int64_t i) __attribute__((always_inline)) {
    return weight ? C(load(weight[i])) + static_cast<C>(problem.weight_offset) : C(1);
  };
  if (problem.out[0] || problem.row_out) {
    const auto state = function.finish(sum_row<C>(size,
                                                  [&](int64_t i) __attribute__((always_inline)) {
                                                    return function.term(at(i).in, factor(i));
                                                  }),
                                       given);
    if constexpr (std::is_same_v<typename Function::State, C>) {
      if (problem.row_out) static_cast<C*>(problem.row_out)[row] = state;
    }
    for (int64_t i = 0; i < size; ++i) {
      C results[outputs];
      function.apply(at(i).in, factor(i), state, results);
      if (Function::added == Added::to_output && added) results[0] += load(added[i]);
      for (int o = 0; o < outputs; ++o)
        static_cast<T*>(problem.out[o])[row * size + i] = Store<T>::from(results[o]);
    }
  }
  if constexpr (Function::inputs > 1) {
    if (columns) {
      for (int64_t i = 0; i < size; ++i) columns[i] += function.column(at(i).in, given);
    }
  }
}

template <typename Op>
OPWRIGHT_INLINE void compute_rows(const RowProblem& problem, int64_t begin, int64_t end) {
  with_row_types<Op>(problem, [&](auto element, auto weight) __attribute__((always_inline)) {
    using T = decltype(element);
    const typename Op::template Forward<Compute<T>> function(problem);
    for (int64_t row = begin; row < end; ++row)
      compute_row<T, decltype(weight)>(function, problem, row, nullptr);
  });
}

template <typename Op>
OPWRIGHT_INLINE void compute_part(const RowProblem& problem, int64_t part) {
  double* columns = nullptr;
  if (problem.column_out) {
    columns = static_cast<double*>(problem.partial) + part * problem.size;
    std::fill(columns, columns + problem.size, 0.0);
  }
  const int64_t rows = problem.rows.numel;
  with_row_types<Op>(problem, [&](auto element, auto weight) __attribute__((always_inline)) {
    using T = decltype(element);
    const typename Op::template Backward<Compute<T>> function(problem);
    for (int64_t row = rows * part / column_parts; row < rows * (part + 1) / column_parts; ++row)
      compute_row<T, decltype(weight)>(function, problem, row, columns);
  });
}

template <typename Op>
OPWRIGHT_INLINE void sum_parts(const RowProblem& problem, int64_t begin, int64_t end) {
  with_row_types<Op>(problem, [&](auto, auto weight) __attribute__((always_inline)) {
    using W = decltype(weight);
    for (int64_t i = begin; i < end; ++i) {
      double sum = 0;
      for (int64_t part = 0; part < column_parts; ++part)
        sum += static_cast<const double*>(problem.partial)[part * problem.size + i];
      static_cast<W*>(problem.column_out)[i] = Store<W>::from(static_cast<Compute<W>>(sum));
    }
  });
}

}  // namespace opwright::cpu
