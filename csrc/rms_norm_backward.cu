// rms_norm on CUDA, backward.
//
// With h = x * rstd:  grad_x = rstd * (grad * weight - h * mean(grad * weight * h)),
//                     grad_weight = the sum of grad * h over the rows.
//
// As many blocks as fit walk over the rows and keep the weight's gradient in registers, so grad and
// x are read once. Each block leaves one partial sum of the weight's gradient; a second kernel adds
// them up, always in the same order. While a row is computed, the next ones are on their way into
// shared memory. Each thread reads there only what it has copied itself, so that no barrier is
// needed for them.
#include <algorithm>

#include "opwright/rows.cuh"
#include "rms_norm.h"

namespace opwright {
namespace {

template <typename T>
struct Backward {
  using Number = Compute<T>;
  const T *grad, *x, *weight;
  int64_t grad_stride, x_stride, weight_stride;
  const Number* rstd;
  T* grad_x;
  Number* partial;  // null where the weight's gradient is not needed
  int64_t rows;
  int size;
};

// How the rows of one length are divided: `vectors` for each of a row's `row_threads` threads, and
// `stages` rows on their way at once. `in_registers`: a row's vectors leave shared memory before
// the sum over the row, which makes room for the next copies early.
template <int threads_, int row_threads_, int vectors_, int stages_, bool in_registers_,
          int blocks_>
struct Shape {
  static constexpr int threads = threads_, row_threads = row_threads_, vectors = vectors_,
                       stages = stages_;
  static constexpr bool in_registers = in_registers_;
  static constexpr int blocks = blocks_;  // at most, on one multiprocessor
  static constexpr int rows = threads / row_threads;
};

template <typename T, typename Shape>
__global__ void __launch_bounds__(Shape::threads)
    rms_norm_backward_kernel(Backward<T> problem, int64_t grad_row_stride, int64_t x_row_stride) {
  using Number = Compute<T>;
  constexpr int vector_size = Vector<T>::size, threads = Shape::threads;
  constexpr int row_threads = Shape::row_threads, vectors = Shape::vectors;
  extern __shared__ uint4 buffer[];
  __shared__ Number sums[2][32];
  const int lane = threadIdx.x % row_threads, group = threadIdx.x / row_threads;
  const int row_vectors = problem.size / vector_size;
  const int64_t step = static_cast<int64_t>(gridDim.x) * Shape::rows;
  const Number one_over_size = Number(1) / problem.size;

  const auto at = [&](int stage, int operand, int j) -> uint4& {
    return buffer[((stage * 2 + operand) * vectors + j) * threads + threadIdx.x];
  };
  const auto fetch_vector = [&](int stage, int operand, int64_t row, int j) {
    if (row >= problem.rows || j * row_threads + lane >= row_vectors) return;
    const T* from =
        operand == 0 ? problem.grad + row * grad_row_stride : problem.x + row * x_row_stride;
    copy_async(&at(stage, operand, j),
               reinterpret_cast<const uint4*>(from) + lane + j * row_threads);
  };
  const auto fetch = [&](int stage, int64_t row) {
#pragma unroll
    for (int j = 0; j < vectors; ++j) fetch_vector(stage, 0, row, j);
#pragma unroll
    for (int j = 0; j < vectors; ++j) fetch_vector(stage, 1, row, j);
    commit_copies();
  };

  int64_t first = static_cast<int64_t>(blockIdx.x) * Shape::rows;
#pragma unroll 1
  for (int s = 0; s < Shape::stages; ++s) fetch(s, first + s * step + group);

  uint4 weight[vectors];
  alignas(16) Number weight_grad[vectors][vector_size];
#pragma unroll
  for (int j = 0; j < vectors; ++j) {
    Number factors[vector_size];
#pragma unroll
    for (int e = 0; e < vector_size; ++e) {
      weight_grad[j][e] = 0;
      factors[e] = 1;
    }
    weight[j] = pack<T>(factors);
    if (problem.weight && j * row_threads + lane < row_vectors)
      weight[j] = __ldg(reinterpret_cast<const uint4*>(problem.weight) + j * row_threads + lane);
  }

  Number next_rstd = first + group < problem.rows ? problem.rstd[first + group] : Number(0);
  for (int stage = 0, turn = 0; first < problem.rows; first += step, turn ^= 1) {
    const int64_t row = first + group;
    const int own_vectors = row < problem.rows ? row_vectors : 0;
    const Number rstd = next_rstd;
    if (row + step < problem.rows) next_rstd = problem.rstd[row + step];
    wait_for_copies<Shape::stages - 1>();

    uint4 own_grad[Shape::in_registers ? vectors : 1], own_x[Shape::in_registers ? vectors : 1];
    Number sum = 0;
#pragma unroll
    for (int j = 0; j < vectors; ++j) {
      const bool is_own = j * row_threads + lane < own_vectors;
      const uint4 grad_bytes = is_own ? at(stage, 0, j) : uint4{0, 0, 0, 0};
      const uint4 x_bytes = is_own ? at(stage, 1, j) : uint4{0, 0, 0, 0};
      if constexpr (Shape::in_registers) {
        own_grad[j] = grad_bytes;
        own_x[j] = x_bytes;
      }
      Number grad[vector_size], x[vector_size], factors[vector_size];
      unpack<T>(grad_bytes, grad);
      unpack<T>(x_bytes, x);
      unpack<T>(weight[j], factors);
#pragma unroll
      for (int e = 0; e < vector_size; ++e) sum += grad[e] * factors[e] * x[e];
    }
    if constexpr (Shape::in_registers) fetch(stage, row + Shape::stages * step);
    sum = sum_over_row<row_threads>(sum, sums[turn]);
    const Number correction = sum * one_over_size * rstd * rstd * rstd;

    const int64_t out_at = row * row_vectors + lane;
#pragma unroll
    for (int j = 0; j < vectors; ++j) {
      if (j * row_threads + lane >= own_vectors) continue;
      Number grad[vector_size], x[vector_size], factors[vector_size], result[vector_size];
      unpack<T>(Shape::in_registers ? own_grad[j] : at(stage, 0, j), grad);
      unpack<T>(Shape::in_registers ? own_x[j] : at(stage, 1, j), x);
      if constexpr (!Shape::in_registers) fetch_vector(stage, 0, row + Shape::stages * step, j);
      unpack<T>(weight[j], factors);
#pragma unroll
      for (int e = 0; e < vector_size; ++e) {
        const Number scaled = grad[e] * rstd;
        result[e] = scaled * factors[e] - x[e] * correction;
        weight_grad[j][e] += scaled * x[e];
      }
      if (problem.grad_x)
        reinterpret_cast<uint4*>(problem.grad_x)[out_at + j * row_threads] = pack<T>(result);
    }
    if constexpr (!Shape::in_registers) {
#pragma unroll
      for (int j = 0; j < vectors; ++j) fetch_vector(stage, 1, row + Shape::stages * step, j);
      commit_copies();
    }
    stage = stage + 1 == Shape::stages ? 0 : stage + 1;
  }
  if (!problem.partial) return;

  // The block's partial sum. Threads that share columns add up through shared memory.
  Number* partial = problem.partial + static_cast<int64_t>(blockIdx.x) * problem.size;
  if constexpr (Shape::rows > 1) {
    auto* shared = reinterpret_cast<Number*>(buffer);
    wait_for_copies<0>();
    __syncthreads();
#pragma unroll
    for (int j = 0; j < vectors; ++j) {
#pragma unroll
      for (int e = 0; e < vector_size; ++e)
        shared[(j * vector_size + e) * threads + threadIdx.x] = weight_grad[j][e];
    }
    __syncthreads();
    for (int i = threadIdx.x; i < vectors * vector_size * row_threads; i += threads) {
      const int place = i / row_threads, other_lane = i % row_threads;
      const int vector = place / vector_size * row_threads + other_lane;
      if (vector >= row_vectors) continue;
      Number sum = 0;
      for (int g = 0; g < Shape::rows; ++g)
        sum += shared[place * threads + g * row_threads + other_lane];
      partial[vector * vector_size + place % vector_size] = sum;
    }
  } else {
#pragma unroll
    for (int j = 0; j < vectors; ++j) {
      if (j * row_threads + lane >= row_vectors) continue;
      auto* to = reinterpret_cast<uint4*>(partial + (j * row_threads + lane) * vector_size);
      constexpr int numbers = 16 / sizeof(Number);
#pragma unroll
      for (int e = 0; e < vector_size; e += numbers)
        to[e / numbers] = *reinterpret_cast<const uint4*>(&weight_grad[j][e]);
    }
  }
}

// --- rows of any length, alignment and stride
// -----------------------------------------------------

template <typename T, int threads, int row_threads>
__global__ void __launch_bounds__(threads) any_grad_x_kernel(Backward<T> problem, Walk<2> walk) {
  using Number = Compute<T>;
  __shared__ Number sums[32];
  const int lane = threadIdx.x % row_threads;
  const int64_t row =
      static_cast<int64_t>(blockIdx.x) * (threads / row_threads) + threadIdx.x / row_threads;
  const int size = row < problem.rows ? problem.size : 0;
  int64_t offsets[2] = {};
  if (row < problem.rows) row_offsets(walk, row, offsets);
  const T *grad = problem.grad + offsets[0], *x = problem.x + offsets[1];
  const auto scaled_grad = [&](int64_t i) {
    const Number value = load(grad[i * problem.grad_stride]);
    return problem.weight ? value * load(problem.weight[i * problem.weight_stride]) : value;
  };
  Number sum = 0;
#pragma unroll 1
  for (int64_t i = lane; i < size; i += row_threads)
    sum += scaled_grad(i) * load(x[i * problem.x_stride]);
  sum = sum_over_row<row_threads>(sum, sums);
  const Number rstd = row < problem.rows ? problem.rstd[row] : Number(0);
  const Number correction = sum * (Number(1) / problem.size) * rstd * rstd * rstd;
#pragma unroll 1
  for (int64_t i = lane; i < size; i += row_threads) {
    problem.grad_x[row * problem.size + i] =
        store<T>(scaled_grad(i) * rstd - load(x[i * problem.x_stride]) * correction);
  }
}

constexpr int any_partials = 64;  // parts that the rows are divided into

// 32 columns and one part of the rows a block.
template <typename T>
__global__ void __launch_bounds__(threads_per_block)
    any_grad_weight_kernel(Backward<T> problem, Walk<2> walk, int column_blocks) {
  using Number = Compute<T>;
  constexpr int row_threads = threads_per_block / 32;
  __shared__ Number sums[row_threads][32];
  const int lane = threadIdx.x % 32, group = threadIdx.x / 32;
  const int column = static_cast<int>(blockIdx.x % column_blocks) * 32 + lane;
  const int part = static_cast<int>(blockIdx.x) / column_blocks;
  Number sum = 0;
  if (column < problem.size) {
    const int64_t step = static_cast<int64_t>(any_partials) * row_threads;
    for (int64_t row = part * row_threads + group; row < problem.rows; row += step) {
      int64_t offsets[2];
      row_offsets(walk, row, offsets);
      sum += load(problem.grad[offsets[0] + column * problem.grad_stride]) *
             load(problem.x[offsets[1] + column * problem.x_stride]) * problem.rstd[row];
    }
  }
  sums[group][lane] = sum;
  __syncthreads();
  if (group != 0 || column >= problem.size) return;
  for (int g = 1; g < row_threads; ++g) sum += sums[g][lane];
  problem.partial[static_cast<int64_t>(part) * problem.size + column] = sum;
}

// --- the sum of the partial sums ---------------------------------

// 32 columns a block; each warp adds every 32nd partial sum.
template <typename T>
__global__ void __launch_bounds__(1024)
    sum_partials_kernel(const Compute<T>* partial, T* grad_weight, int partials, int size) {
  using Number = Compute<T>;
  __shared__ Number sums[32][33];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int column = blockIdx.x * 32 + lane;
  Number sum = 0;
  if (column < size) {
#pragma unroll 8
    for (int p = warp; p < partials; p += 32)
      sum += partial[static_cast<int64_t>(p) * size + column];
  }
  sums[warp][lane] = sum;
  __syncthreads();
  sum = sum_over_row<32>(sums[lane][warp], sums[0]);
  const int own = blockIdx.x * 32 + warp;
  if (lane == 0 && own < size) grad_weight[own] = store<T>(sum);
}

// --- which of them -----------------------------------------------

template <typename T, typename Shape>
int shared_bytes() {
  const int staged = Shape::stages * 2 * Shape::vectors * Shape::threads * 16;
  const int summed =
      Shape::vectors * Vector<T>::size * Shape::threads * static_cast<int>(sizeof(Compute<T>));
  return Shape::rows > 1 ? std::max(staged, summed) : staged;
}

// The blocks of a launch: what fits on the device at once, but no more than there are rows; 0 where
// the device's shared memory is too small.
template <typename T, typename Shape>
int64_t block_count(int64_t rows, int device) {
  int fitting = 0, multiprocessors = 0;
  const auto* kernel = reinterpret_cast<const void*>(&rms_norm_backward_kernel<T, Shape>);
  if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                           shared_bytes<T, Shape>()) != cudaSuccess ||
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&fitting, kernel, Shape::threads,
                                                    shared_bytes<T, Shape>()) != cudaSuccess ||
      cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device) !=
          cudaSuccess) {
    cudaGetLastError();
    return 0;
  }
  return std::min(divide_up(rows, Shape::rows),
                  static_cast<int64_t>(multiprocessors) * std::min(fitting, Shape::blocks));
}

// The same, asked once for each of the first 64 devices.
template <typename T, typename Shape>
int64_t known_block_count(int64_t rows, int device) {
  constexpr int known_devices = 64;
  static std::atomic<int64_t> known[known_devices] = {};
  if (device >= known_devices) return block_count<T, Shape>(rows, device);
  int64_t most = known[device].load(std::memory_order_relaxed);
  if (most == 0) {
    most = block_count<T, Shape>(INT64_MAX / 2, device) + 1;  // 0 is for "not asked yet"
    known[device].store(most, std::memory_order_relaxed);
  }
  return std::min(divide_up(rows, Shape::rows), most - 1);
}

// Calls `use(Shape{})` with the shape for rows of that many vectors; chosen from a sweep on an
// H200; neighbouring lengths share one, to keep the library small. False where there is none.
template <typename T, typename Use>
bool with_shape(int64_t vectors, Use&& use) {
  if (vectors <= 16) return use(Shape<256, 16, 1, 2, true, 4>{});
  if (vectors <= 64) return use(Shape<128, 32, 2, 2, true, 16>{});
  if (vectors <= 256) return use(Shape<128, 128, 2, 2, true, 8>{});
  if (vectors <= 512) return use(Shape<256, 256, 2, 2, true, 2>{});
  if (vectors <= 1024) return use(Shape<512, 512, 2, 2, true, 1>{});
  if (vectors <= 2048) return use(Shape<512, 512, 4, 1, false, 1>{});
  if constexpr (std::is_same_v<T, float>) {
    if (vectors <= 4096) return use(Shape<512, 512, 8, 1, false, 1>{});
  }
  return false;
}

// float64 is rare: its rows are computed element by element.
template <typename T>
constexpr bool has_vector_kernels = !std::is_same_v<T, double>;

template <typename T>
bool is_aligned_problem(const RmsNormBackward& problem) {
  bool aligned = problem.grad_stride == 1 && problem.x_stride == 1 && is_aligned(problem.grad) &&
                 is_aligned(problem.x) && is_aligned(problem.grad_x) &&
                 problem.size % Vector<T>::size == 0;
  aligned &= problem.rows.dims == 1;
  for (int i = 0; i < 2; ++i) aligned &= problem.rows.strides[i][0] % Vector<T>::size == 0;
  if (problem.weight) aligned &= problem.weight_stride == 1 && is_aligned(problem.weight);
  return aligned;
}

template <typename T>
int64_t partial_sums_of(const RmsNormBackward& problem, Stream stream) {
  int64_t blocks = 0;
  if constexpr (has_vector_kernels<T>) {
    if (is_aligned_problem<T>(problem)) {
      with_shape<T>(problem.size / Vector<T>::size, [&](auto shape) {
        blocks = known_block_count<T, decltype(shape)>(problem.rows.numel, stream.device);
        return blocks > 0;
      });
    }
  }
  return blocks > 0 ? blocks : any_partials;
}

template <typename T>
cudaError_t run_any(const Backward<T>& problem, const Walk<2>& walk, Stream stream) {
  cudaError_t error = cudaSuccess;
  if (problem.grad_x) {
    error = problem.size <= 1024 ? launch<any_grad_x_kernel<T, 128, 32>>(
                                       {divide_up(problem.rows, 4), 128}, stream, problem, walk)
                                 : launch<any_grad_x_kernel<T, 512, 512>>({problem.rows, 512},
                                                                          stream, problem, walk);
  }
  if (error != cudaSuccess || !problem.partial) return error;
  const int column_blocks = static_cast<int>(divide_up(problem.size, 32));
  return launch<any_grad_weight_kernel<T>>({int64_t{column_blocks} * any_partials}, stream, problem,
                                           walk, column_blocks);
}

template <typename T>
cudaError_t run(const RmsNormBackward& problem, Stream stream) {
  using Number = Compute<T>;
  auto* partial = static_cast<Number*>(problem.grad_weight ? problem.partial : nullptr);
  const Backward<T> backward{static_cast<const T*>(problem.grad),
                             static_cast<const T*>(problem.x),
                             static_cast<const T*>(problem.weight),
                             problem.grad_stride,
                             problem.x_stride,
                             problem.weight_stride,
                             static_cast<const Number*>(problem.rstd),
                             static_cast<T*>(problem.grad_x),
                             partial,
                             problem.rows.numel,
                             static_cast<int>(problem.size)};
  cudaError_t error = cudaSuccess;
  int64_t partials = any_partials;
  bool ran = backward.rows == 0;  // the gradient of the weight is then a sum of nothing
  if (ran) partials = 0;
  if constexpr (has_vector_kernels<T>) {
    ran = ran ||
          (is_aligned_problem<T>(problem) &&
           with_shape<T>(problem.size / Vector<T>::size, [&](auto shape) {
             using Chosen = decltype(shape);
             const int64_t blocks = known_block_count<T, Chosen>(backward.rows, stream.device);
             if (blocks == 0) return false;
             partials = blocks;
             const Grid grid{blocks, Chosen::threads, shared_bytes<T, Chosen>()};
             error = launch<rms_norm_backward_kernel<T, Chosen>>(
                 grid, stream, backward, problem.rows.strides[0][0], problem.rows.strides[1][0]);
             return true;
           }));
  }
  if (!ran) error = run_any(backward, Walk<2>(problem.rows), stream);
  if (error != cudaSuccess || !partial) return error;
  return launch<sum_partials_kernel<T>>({divide_up(problem.size, 32), 1024}, stream, partial,
                                        static_cast<T*>(problem.grad_weight),
                                        static_cast<int>(partials), static_cast<int>(problem.size));
}

}  // namespace

int64_t partial_sums(const RmsNormBackward& problem, Stream stream) {
  return with_element_type<rms_norm_dtypes.bits, int64_t>(problem.dtype, [&](auto element) {
    return partial_sums_of<decltype(element)>(problem, stream);
  });
}

cudaError_t rms_norm_backward(const RmsNormBackward& problem, Stream stream) {
  return with_element_type<rms_norm_dtypes.bits, cudaError_t>(
      problem.dtype, [&](auto element) { return run<decltype(element)>(problem, stream); });
}

}  // namespace opwright
