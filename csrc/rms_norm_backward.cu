// rms_norm on CUDA, backward.
#include "opwright/row_columns.cuh"
#include "rms_norm.h"

namespace opwright {

int64_t rms_norm_partials(const RowProblem& problem, Stream stream) {
  return with_row_types<rms_norm_dtypes.bits, int64_t>(problem, [&](auto element, auto weight) {
    using T = decltype(element);
    return plan_columns<T, decltype(weight), RmsNormBackward<Compute<T>>>(problem, stream)
        .partials();
  });
}

cudaError_t rms_norm_backward(const RowProblem& problem, Stream stream) {
  return with_row_types<rms_norm_dtypes.bits, cudaError_t>(problem, [&](auto element, auto weight) {
    using T = decltype(element);
    const auto function = make_rms_norm_backward<Compute<T>>(problem.size);
    return run_columns<T, decltype(weight)>(function, problem, stream);
  });
}

}  // namespace opwright
