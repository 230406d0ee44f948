// rms_norm on CUDA, forward.
#include "opwright/row_kernels.cuh"
#include "rms_norm.h"

namespace opwright {

cudaError_t rms_norm(const RowProblem& problem, Stream stream) {
  return with_element_type<rms_norm_dtypes.bits, cudaError_t>(problem.dtype, [&](auto element) {
    using T = decltype(element);
    return run_rows<T>(RmsNorm<Compute<T>>(problem), problem, stream);
  });
}

}  // namespace opwright
