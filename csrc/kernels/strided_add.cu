// strided_add, strided_cust_add: the sums for inputs that broadcast or have gaps, one element a
// thread.
#include <algorithm>

#include "launch.cuh"

namespace cuda_ext {
namespace {

// A Layout with indices of 32 bits where they suffice: GPUs divide those several times faster.
template <typename Index>
struct Walk {
  int dims;
  Index sizes[max_dims];
  int64_t strides[max_inputs][max_dims];

  // Where output element `i` finds its operands.
  __device__ void offsets(Index i, int64_t& a, int64_t& b) const {
    a = b = 0;
    for (int d = 0; d < dims; ++d) {
      const Index next = i / sizes[d];
      const int64_t at = i - next * sizes[d];
      a += at * strides[0][d];
      b += at * strides[1][d];
      i = next;
    }
  }
};

template <typename T, typename Index>
__global__ void strided_add_kernel(const T* a, const T* b, T* out, int64_t n, Walk<Index> walk) {
  const int64_t i = thread_index();
  if (i >= n) return;
  int64_t at_a, at_b;
  walk.offsets(static_cast<Index>(i), at_a, at_b);
  out[i] = sum(a[at_a], b[at_b]);
}

template <typename T, typename Index>
__global__ void strided_cust_add_kernel(const T* x, Compute<T> value, T* out, int64_t n,
                                        Walk<Index> walk) {
  const int64_t i = thread_index();
  if (i >= n) return;
  int64_t at, same;
  walk.offsets(static_cast<Index>(i), at, same);
  out[i] = store<T>(load(x[at]) + value);
}

// Calls `use(walk)` with the narrowest index type that holds the element count.
template <typename Use>
cudaError_t with_walk(const Layout& layout, Use&& use) {
  const auto fill = [&](auto walk) {
    walk.dims = layout.dims;
    std::copy_n(layout.sizes, layout.dims, walk.sizes);
    for (int i = 0; i < max_inputs; ++i)
      std::copy_n(layout.strides[i], layout.dims, walk.strides[i]);
    return use(walk);
  };
  return layout.numel <= INT_MAX ? fill(Walk<uint32_t>{}) : fill(Walk<uint64_t>{});
}

}  // namespace

cudaError_t strided_add(DType dtype, const void* a, const void* b, void* out, const Layout& layout,
                        Stream stream) {
  return with_element_type(dtype, [&](auto element) {
    using T = decltype(element);
    return with_walk(layout, [&](auto walk) {
      return launch<strided_add_kernel<T, std::decay_t<decltype(walk.sizes[0])>>>(
          layout.numel, stream, static_cast<const T*>(a), static_cast<const T*>(b),
          static_cast<T*>(out), layout.numel, walk);
    });
  });
}

cudaError_t strided_cust_add(DType dtype, const void* x, Scalar value, void* out,
                             const Layout& layout, Stream stream) {
  return with_element_type(dtype, [&](auto element) {
    using T = decltype(element);
    return with_walk(layout, [&](auto walk) {
      return launch<strided_cust_add_kernel<T, std::decay_t<decltype(walk.sizes[0])>>>(
          layout.numel, stream, static_cast<const T*>(x), scalar_as<Compute<T>>(value),
          static_cast<T*>(out), layout.numel, walk);
    });
  });
}

}  // namespace cuda_ext
