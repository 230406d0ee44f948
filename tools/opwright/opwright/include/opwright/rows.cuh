// The CUDA engine for row ops: rows.h describes an op.
#pragma once

#define OPWRIGHT_DEFINE_ROWS(op)                  \
  OPWRIGHT_FORWARD_ON_CUDA(op) {                  \
    return run_forward<op>(problem, stream);      \
  }                                               \
  OPWRIGHT_BACKWARD_ON_CUDA(op) {                 \
    return run_backward<op>(problem, stream);     \
  }                                               \
  OPWRIGHT_ADDS_ON_CUDA(op) {                     \
    return adds_in_kernel<op>(problem, backward); \
  }                                               \
  OPWRIGHT_PARTIALS_ON_CUDA(op) {                 \
    return count_partials<op>(problem, stream);   \
  }
#include "row_columns.cuh"

namespace opwright {

// Calls `use(T{})` with the type of the elements.
template <typename Op, typename Result, typename Use>
Result with_type(const RowProblem& problem, Use&& use) {
  return with_element_type<Op::dtypes.bits, Result>(problem.dtype, use);
}

template <typename Op>
cudaError_t run_forward(const RowProblem& problem, Stream stream) {
  return with_type<Op, cudaError_t>(problem, [&](auto element) {
    using T = decltype(element);
    return run_rows<T>(typename Op::template Forward<Compute<T>>(problem), problem, stream);
  });
}

template <typename Op>
cudaError_t run_backward(const RowProblem& problem, Stream stream) {
  return with_type<Op, cudaError_t>(problem, [&](auto element) {
    using T = decltype(element);
    return run_columns<T>(typename Op::template Backward<Compute<T>>(problem), problem, stream);
  });
}

template <typename Op>
bool adds_in_kernel(const RowProblem& problem, bool backward) {
  return with_type<Op, bool>(problem, [&](auto element) {
    using T = decltype(element);
    using C = Compute<T>;
    return backward ? adds_in_kernel<T, typename Op::template Backward<C>>(problem)
                    : adds_in_kernel<T, typename Op::template Forward<C>>(problem);
  });
}

template <typename Op>
int64_t count_partials(const RowProblem& problem, Stream stream) {
  return with_type<Op, int64_t>(problem, [&](auto element) {
    using T = decltype(element);
    using Function = typename Op::template Backward<Compute<T>>;
    return plan_columns<T, Function>(problem, stream).partials();
  });
}

}  // namespace opwright
