// fast_add: out[i] = a[i] + b[i] at memory speed, with 128-bit loads and stores.
//
// A block sums one tile. Each of its threads first issues all its loads, so that enough bytes are on their way to hide
// the memory's latency, and then adds and stores. The last tile is partial and goes element by element. Pointers that
// are not 16-byte aligned (a slice such as x[1:]) take a kernel of the same shape whose threads load single elements,
// neighbours next to each other.
#include "launch.cuh"

namespace cuda_ext {
namespace {

constexpr int vectors_per_thread = 2;

template <typename T>
struct alignas(16) Vector {
  static constexpr int size = 16 / sizeof(T);
  T element[size];
};

template <typename T>
constexpr int elements_per_thread = vectors_per_thread * Vector<T>::size;

template <typename T>
__device__ void add_tail(const T* a, const T* b, T* out, int64_t begin, int64_t n) {
  for (int64_t i = begin + threadIdx.x; i < n; i += threads_per_block) out[i] = sum(a[i], b[i]);
}

template <typename T>
__global__ void __launch_bounds__(threads_per_block)
    vector_add_kernel(const T* a, const T* b, T* out, int64_t n) {
  constexpr int tile = elements_per_thread<T> * threads_per_block;
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * tile;
  if (begin + tile > n) return add_tail(a, b, out, begin, n);

  const auto* from_a = reinterpret_cast<const Vector<T>*>(a + begin) + threadIdx.x;
  const auto* from_b = reinterpret_cast<const Vector<T>*>(b + begin) + threadIdx.x;
  auto* to = reinterpret_cast<Vector<T>*>(out + begin) + threadIdx.x;
  Vector<T> x[vectors_per_thread], y[vectors_per_thread];
#pragma unroll
  for (int v = 0; v < vectors_per_thread; ++v) {
    x[v] = from_a[v * threads_per_block];
    y[v] = from_b[v * threads_per_block];
  }
#pragma unroll
  for (int v = 0; v < vectors_per_thread; ++v) {
#pragma unroll
    for (int e = 0; e < Vector<T>::size; ++e) x[v].element[e] = sum(x[v].element[e], y[v].element[e]);
    to[v * threads_per_block] = x[v];
  }
}

template <typename T>
__global__ void __launch_bounds__(threads_per_block)
    unaligned_add_kernel(const T* a, const T* b, T* out, int64_t n) {
  constexpr int tile = elements_per_thread<T> * threads_per_block;
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * tile;
  if (begin + tile > n) return add_tail(a, b, out, begin, n);

  T x[elements_per_thread<T>], y[elements_per_thread<T>];
#pragma unroll
  for (int e = 0; e < elements_per_thread<T>; ++e) {
    x[e] = a[begin + e * threads_per_block + threadIdx.x];
    y[e] = b[begin + e * threads_per_block + threadIdx.x];
  }
#pragma unroll
  for (int e = 0; e < elements_per_thread<T>; ++e) out[begin + e * threads_per_block + threadIdx.x] = sum(x[e], y[e]);
}

bool is_aligned(const void* pointer) {
  return reinterpret_cast<uintptr_t>(pointer) % 16 == 0;
}

}  // namespace

cudaError_t fast_add(DType dtype, const void* a, const void* b, void* out, int64_t n, cudaStream_t stream) {
  return with_element_type(dtype, [&](auto element) {
    using T = decltype(element);
    const bool aligned = is_aligned(a) && is_aligned(b) && is_aligned(out);
    const int64_t threads = (n + elements_per_thread<T> - 1) / elements_per_thread<T>;
    return launch(aligned ? vector_add_kernel<T> : unaligned_add_kernel<T>, threads, stream, static_cast<const T*>(a),
                  static_cast<const T*>(b), static_cast<T*>(out), n);
  });
}

}  // namespace cuda_ext
