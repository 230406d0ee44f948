// rms_norm on CUDA, forward.
#include "opwright/row_kernels.cuh"
#include "rms_norm.h"

namespace opwright {

bool rms_norm_adds(const RowProblem& problem) {
  return with_element_type<rms_norm_dtypes.bits, bool>(problem.dtype, [&](auto element) {
    using T = decltype(element);
    return adds_in_kernel<T, RmsNorm<Compute<T>>>(problem);
  });
}

cudaError_t rms_norm(const RowProblem& problem, Stream stream) {
  return with_element_type<rms_norm_dtypes.bits, cudaError_t>(problem.dtype, [&](auto element) {
    using T = decltype(element);
    return run_rows<T>(RmsNorm<Compute<T>>(problem), problem, stream);
  });
}

}  // namespace opwright
