// The kernels' interface: raw pointers, int64 sizes, a stream. No torch here.
#pragma once

#include <cstdint>

#include "element.h"
#include "layout.h"

#if defined(CUDA_EXT_WITH_CUDA)
#include <cuda_runtime_api.h>
#endif

namespace cuda_ext {

#if defined(CUDA_EXT_WITH_CUDA)
// A stream and its device, which is the current one.
struct Stream {
  cudaStream_t handle;
  int device;
};

// Each launches on `stream`, never synchronises, and returns the launch's error (which is no longer
// pending then). `a`, `b`, `x` and `out` are device pointers to `n` elements; `out` may be one of
// the inputs.

// out[i] = a[i] + b[i], one element a thread: the readable one.
cudaError_t add(DType dtype, const void* a, const void* b, void* out, int64_t n, Stream stream);

// The same with 128-bit loads and stores wherever the pointers allow them.
cudaError_t fast_add(DType dtype, const void* a, const void* b, void* out, int64_t n,
                     Stream stream);

// out[i] = x[i] + value.
cudaError_t cust_add(DType dtype, const void* x, Scalar value, void* out, int64_t n, Stream stream);

// The same sums for inputs that broadcast or have gaps; `out` is dense in the layout's order.
cudaError_t strided_add(DType dtype, const void* a, const void* b, void* out, const Layout& layout,
                        Stream stream);
cudaError_t strided_cust_add(DType dtype, const void* x, Scalar value, void* out,
                             const Layout& layout, Stream stream);
#endif

// The CPU's kernels work on the output elements [begin, end), so that the caller's thread pool can
// divide the work.
namespace cpu {
void add(DType dtype, const void* a, const void* b, void* out, int64_t begin, int64_t end);
void cust_add(DType dtype, const void* x, Scalar value, void* out, int64_t begin, int64_t end);
void strided_add(DType dtype, const void* a, const void* b, void* out, const Layout& layout,
                 int64_t begin, int64_t end);
void strided_cust_add(DType dtype, const void* x, Scalar value, void* out, const Layout& layout,
                      int64_t begin, int64_t end);
}  // namespace cpu

}  // namespace cuda_ext
