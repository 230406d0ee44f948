// rms_norm on CUDA. Both directions are one file: a release compresses the kernels of a file
// together.
#include "opwright/row_columns.cuh"
#include "rms_norm.h"

namespace opwright {
namespace {

// Calls `use(T{})` with the type of the elements.
template <typename Result, typename Use>
Result with_type(const RowProblem& problem, Use&& use) {
  return with_element_type<rms_norm_dtypes.bits, Result>(problem.dtype, use);
}

}  // namespace

bool rms_norm_adds(const RowProblem& problem) {
  return with_type<bool>(problem, [&](auto element) {
    using T = decltype(element);
    return adds_in_kernel<T, RmsNorm<Compute<T>>>(problem);
  });
}

cudaError_t rms_norm(const RowProblem& problem, Stream stream) {
  return with_type<cudaError_t>(problem, [&](auto element) {
    using T = decltype(element);
    return run_rows<T>(RmsNorm<Compute<T>>(problem), problem, stream);
  });
}

bool rms_norm_backward_adds(const RowProblem& problem) {
  return with_type<bool>(problem, [&](auto element) {
    using T = decltype(element);
    return adds_in_kernel<T, RmsNormBackward<Compute<T>>>(problem);
  });
}

int64_t rms_norm_partials(const RowProblem& problem, Stream stream) {
  return with_type<int64_t>(problem, [&](auto element) {
    using T = decltype(element);
    return plan_columns<T, RmsNormBackward<Compute<T>>>(problem, stream).partials();
  });
}

cudaError_t rms_norm_backward(const RowProblem& problem, Stream stream) {
  return with_type<cudaError_t>(problem, [&](auto element) {
    using T = decltype(element);
    return run_columns<T>(RmsNormBackward<Compute<T>>(problem), problem, stream);
  });
}

}  // namespace opwright
