// add: out[i] = a[i] + b[i], one element a thread. The kernel to read first.
#include "launch.cuh"

namespace cuda_ext {
namespace {

template <typename T>
__global__ void add_kernel(const T* a, const T* b, T* out, int64_t n) {
  const int64_t i = thread_index();
  if (i < n) out[i] = sum(a[i], b[i]);
}

}  // namespace

cudaError_t add(DType dtype, const void* a, const void* b, void* out, int64_t n, Stream stream) {
  return with_element_type(dtype, [&](auto element) {
    using T = decltype(element);
    return launch<add_kernel<T>>(n, stream, static_cast<const T*>(a), static_cast<const T*>(b),
                                 static_cast<T*>(out), n);
  });
}

}  // namespace cuda_ext
