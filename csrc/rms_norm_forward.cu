// rms_norm on CUDA, forward.
#include "opwright/row_kernels.cuh"
#include "rms_norm.h"

namespace opwright {

cudaError_t rms_norm(const RowProblem& problem, double eps, Stream stream) {
  return with_row_types<rms_norm_dtypes.bits, cudaError_t>(problem, [&](auto element, auto weight) {
    using T = decltype(element);
    const auto function = make_rms_norm<Compute<T>>(problem.size, eps);
    return run_rows<T, decltype(weight)>(function, problem, stream);
  });
}

}  // namespace opwright
