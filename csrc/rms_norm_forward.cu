// rms_norm on CUDA, forward.
//
// Rows of aligned vectors stay in registers between the sum and the result: x is read once. One
// block takes one row, or one warp two or more short ones; blocks that walk over several rows, with
// the next row on its way, are slower (3.6 TB/s instead of 3.9 on an H200), because GPUs hand out
// blocks to whichever multiprocessor is free.
#include "opwright/rows.cuh"
#include "rms_norm.h"

namespace opwright {
namespace {

template <typename T>
struct Forward {
  using Number = Compute<T>;
  const T *x, *weight;
  int64_t x_stride, weight_stride;
  T* out;
  Number* rstd;
  int64_t rows;
  int size;
  Number one_over_size, eps;
};

// Evenly spaced rows of aligned vectors. `vectors` is what each of the `row_threads` threads of a
// row holds; `blocks` of them must fit on a multiprocessor at once, which bounds the registers.
// Rows of a few warps have their part of the weight on its way early; for longer ones, more blocks
// at once are worth more.
template <typename T, int threads, int row_threads, int vectors, int blocks, Caching caching>
__global__ void __launch_bounds__(threads, blocks)
    rms_norm_kernel(Forward<T> problem, int64_t row_stride) {
  using Number = Compute<T>;
  constexpr int vector_size = Vector<T>::size;
  constexpr bool early = row_threads <= 256;
  __shared__ Number partial[32];
  const int lane = threadIdx.x % row_threads;
  const int64_t row =
      static_cast<int64_t>(blockIdx.x) * (threads / row_threads) + threadIdx.x / row_threads;
  const int row_vectors = row < problem.rows ? problem.size / vector_size : 0;
  const auto* x = reinterpret_cast<const uint4*>(problem.x + row * row_stride) + lane;
  const auto* weight = reinterpret_cast<const uint4*>(problem.weight) + lane;
  auto* out = reinterpret_cast<uint4*>(problem.out + row * problem.size) + lane;
  Number one[vector_size];
#pragma unroll
  for (int e = 0; e < vector_size; ++e) one[e] = 1;

  const auto factor = [&](int j) {
    const bool has_factor = problem.weight && j * row_threads + lane < row_vectors;
    return has_factor ? __ldg(weight + j * row_threads) : pack<T>(one);
  };

  uint4 own[vectors], early_factors[early ? vectors : 1];
#pragma unroll
  for (int j = 0; j < vectors; ++j)
    own[j] = j * row_threads + lane < row_vectors ? load_vector<caching>(x + j * row_threads)
                                                  : uint4{0, 0, 0, 0};
  if constexpr (early) {
#pragma unroll
    for (int j = 0; j < vectors; ++j) early_factors[j] = factor(j);
  }
  Number sum = 0;
#pragma unroll
  for (int j = 0; j < vectors; ++j) {
    Number numbers[vector_size];
    unpack<T>(own[j], numbers);
#pragma unroll
    for (int e = 0; e < vector_size; ++e) sum += numbers[e] * numbers[e];
  }
  sum = sum_over_row<row_threads>(sum, partial);
  const Number rstd = inverse_sqrt(sum * problem.one_over_size + problem.eps);
  if (problem.rstd && lane == 0 && row < problem.rows) problem.rstd[row] = rstd;
#pragma unroll
  for (int j = 0; j < vectors; ++j) {
    Number numbers[vector_size], factors[vector_size];
    unpack<T>(own[j], numbers);
    unpack<T>(early ? early_factors[j] : factor(j), factors);
#pragma unroll
    for (int e = 0; e < vector_size; ++e) numbers[e] = numbers[e] * rstd * factors[e];
    if (j * row_threads + lane < row_vectors)
      store_vector<caching>(out + j * row_threads, pack<T>(numbers));
  }
}

// Rows of any length, alignment and stride, element by element; x is read twice.
template <typename T, int threads, int row_threads>
__global__ void __launch_bounds__(threads) any_rms_norm_kernel(Forward<T> problem, Walk<1> walk) {
  using Number = Compute<T>;
  __shared__ Number partial[32];
  const int lane = threadIdx.x % row_threads;
  const int64_t row =
      static_cast<int64_t>(blockIdx.x) * (threads / row_threads) + threadIdx.x / row_threads;
  const int size = row < problem.rows ? problem.size : 0;
  int64_t offset[1] = {};
  if (row < problem.rows) row_offsets(walk, row, offset);
  const T* x = problem.x + offset[0];
  Number sum = 0;
#pragma unroll 1
  for (int64_t i = lane; i < size; i += row_threads) {
    const Number number = load(x[i * problem.x_stride]);
    sum += number * number;
  }
  sum = sum_over_row<row_threads>(sum, partial);
  const Number rstd = inverse_sqrt(sum * problem.one_over_size + problem.eps);
  if (problem.rstd && lane == 0 && row < problem.rows) problem.rstd[row] = rstd;
#pragma unroll 1
  for (int64_t i = lane; i < size; i += row_threads) {
    Number number = load(x[i * problem.x_stride]) * rstd;
    if (problem.weight) number *= load(problem.weight[i * problem.weight_stride]);
    problem.out[row * problem.size + i] = store<T>(number);
  }
}

template <typename T, int threads, int row_threads, int vectors, int blocks = 1,
          Caching caching = Caching::usual>
cudaError_t run_vectors(const Forward<T>& problem, int64_t row_stride, Stream stream) {
  const Grid grid{divide_up(problem.rows, threads / row_threads), threads};
  return launch<rms_norm_kernel<T, threads, row_threads, vectors, blocks, caching>>(
      grid, stream, problem, row_stride);
}

template <typename T, int threads, int row_threads>
cudaError_t run_any(const Forward<T>& problem, const Walk<1>& walk, Stream stream) {
  const Grid grid{divide_up(problem.rows, threads / row_threads), threads};
  return launch<any_rms_norm_kernel<T, threads, row_threads>>(grid, stream, problem, walk);
}

// The threads, vectors and caching for each row length are chosen from a sweep on an H200, beside
// other people's kernels: with one policy for all, some lengths would lose 1 or 2 %.
template <typename T>
cudaError_t run(const Forward<T>& problem, const Layout& rows, bool aligned, Stream stream) {
  const int vectors = problem.size / Vector<T>::size;
  if constexpr (!std::is_same_v<T, double>) {  // which is rare: element by element
    if (aligned && vectors <= 4096) {
      const int64_t row_stride = rows.strides[0][0];
      if (vectors <= 16)
        return run_vectors<T, 128, 16, 1, 1, Caching::past_l1>(problem, row_stride, stream);
      if (vectors <= 32) return run_vectors<T, 128, 32, 1>(problem, row_stride, stream);
      if (vectors <= 128) return run_vectors<T, 64, 64, 2>(problem, row_stride, stream);
      if (vectors <= 256) return run_vectors<T, 128, 128, 2>(problem, row_stride, stream);
      if (vectors <= 512) return run_vectors<T, 256, 256, 2, 5>(problem, row_stride, stream);
      if (vectors <= 1024) return run_vectors<T, 512, 512, 2, 3>(problem, row_stride, stream);
      if (vectors <= 2048) return run_vectors<T, 512, 512, 4, 2>(problem, row_stride, stream);
      return run_vectors<T, 1024, 1024, 4, 1, Caching::result_first>(problem, row_stride, stream);
    }
  }
  const Walk<1> walk(rows);
  return problem.size <= 1024 ? run_any<T, 128, 32>(problem, walk, stream)
                              : run_any<T, 512, 512>(problem, walk, stream);
}

}  // namespace

cudaError_t rms_norm(const RmsNorm& problem, Stream stream) {
  return with_element_type<rms_norm_dtypes.bits, cudaError_t>(problem.dtype, [&](auto element) {
    using T = decltype(element);
    bool aligned = problem.x_stride == 1 && is_aligned(problem.x) && is_aligned(problem.out) &&
                   problem.size % Vector<T>::size == 0;
    aligned &= problem.rows.dims == 1 && problem.rows.strides[0][0] % Vector<T>::size == 0;
    if (problem.weight) aligned &= problem.weight_stride == 1 && is_aligned(problem.weight);
    const Forward<T> forward{static_cast<const T*>(problem.x),
                             static_cast<const T*>(problem.weight),
                             problem.x_stride,
                             problem.weight_stride,
                             static_cast<T*>(problem.out),
                             static_cast<Compute<T>*>(problem.rstd),
                             problem.rows.numel,
                             static_cast<int>(problem.size),
                             Compute<T>(1) / static_cast<Compute<T>>(problem.size),
                             static_cast<Compute<T>>(problem.eps)};
    return run(forward, problem.rows, aligned, stream);
  });
}

}  // namespace opwright
