// rms_norm on CUDA, backward.
#include "opwright/row_columns.cuh"
#include "rms_norm.h"

namespace opwright {

bool rms_norm_backward_adds(const RowProblem& problem) {
  return with_element_type<rms_norm_dtypes.bits, bool>(problem.dtype, [&](auto element) {
    using T = decltype(element);
    return adds_in_kernel<T, RmsNormBackward<Compute<T>>>(problem);
  });
}

int64_t rms_norm_partials(const RowProblem& problem, Stream stream) {
  return with_element_type<rms_norm_dtypes.bits, int64_t>(problem.dtype, [&](auto element) {
    using T = decltype(element);
    return plan_columns<T, RmsNormBackward<Compute<T>>>(problem, stream).partials();
  });
}

cudaError_t rms_norm_backward(const RowProblem& problem, Stream stream) {
  return with_element_type<rms_norm_dtypes.bits, cudaError_t>(problem.dtype, [&](auto element) {
    using T = decltype(element);
    return run_columns<T>(RmsNormBackward<Compute<T>>(problem), problem, stream);
  });
}

}  // namespace opwright
