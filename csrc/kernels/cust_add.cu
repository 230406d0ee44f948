// cust_add: out[i] = x[i] + value, the scalar added in the type the element is computed in.
#include "launch.cuh"

namespace cuda_ext {
namespace {

template <typename T>
__global__ void cust_add_kernel(const T* x, Compute<T> value, T* out, int64_t n) {
  const int64_t i = thread_index();
  if (i < n) out[i] = store<T>(load(x[i]) + value);
}

}  // namespace

cudaError_t cust_add(DType dtype, const void* x, Scalar value, void* out, int64_t n,
                     Stream stream) {
  return with_element_type(dtype, [&](auto element) {
    using T = decltype(element);
    return launch<cust_add_kernel<T>>(n, stream, static_cast<const T*>(x),
                                      scalar_as<Compute<T>>(value), static_cast<T*>(out), n);
  });
}

}  // namespace cuda_ext
