// The CUDA engine for row ops: rows.h says what an op is.
//
//   aligned_rows_kernel  rows of aligned vectors, in registers and shared memory: read once
//   any_rows_kernel      rows of any length that start anywhere
//
// One block takes one row, or several short ones: GPUs hand out blocks to whichever multiprocessor
// is free, which is faster than blocks that walk over rows (3.9 TB/s against 3.6 on an H200).
// row_columns.cuh has the kernels that also sum over the rows.
#pragma once

#include <algorithm>

#include "rows.cuh"
#include "rows.h"

namespace opwright {

template <typename Function, typename T, typename W>
struct RowArguments {
  using C = Compute<T>;
  Function function;
  const T *in[Function::inputs], *limit[Function::inputs];  // the end of each input's elements
  const W* weight;
  const C* given;
  T* out[Function::outputs];
  C *row_out, *partial;
  int64_t rows, size;
  Walk<Function::inputs> walk;

  RowArguments(const Function& op, const RowProblem& problem)
      : function(op),
        weight(static_cast<const W*>(problem.weight)),
        given(static_cast<const C*>(problem.given)),
        row_out(static_cast<C*>(problem.row_out)),
        partial(static_cast<C*>(problem.column_out ? problem.partial : nullptr)),
        rows(problem.rows.numel),
        size(problem.size),
        walk(problem.rows) {
    for (int i = 0; i < Function::inputs; ++i) {
      in[i] = static_cast<const T*>(problem.in[i]);
      limit[i] = in[i] + size;
      for (int d = 0; d < problem.rows.dims; ++d)
        limit[i] += (problem.rows.sizes[d] - 1) * problem.rows.strides[i][d];
    }
    for (int o = 0; o < Function::outputs; ++o) out[o] = static_cast<T*>(problem.out[o]);
  }
};

// The weights of one vector of elements, as they come from memory.
template <typename T, typename W>
struct Weights {
  static constexpr int count = Vector<T>::size * sizeof(W) / 16, each = Vector<W>::size;
  uint4 bytes[count];

  __device__ __forceinline__ Weights() {
    Compute<W> ones[each];
#pragma unroll
    for (int e = 0; e < each; ++e) ones[e] = 1;
#pragma unroll
    for (int k = 0; k < count; ++k) bytes[k] = pack<W>(ones);
  }
  // Vector `c`, all of it.
  __device__ __forceinline__ Weights(const W* weight, int c) {
#pragma unroll
    for (int k = 0; k < count; ++k)
      bytes[k] = __ldg(reinterpret_cast<const uint4*>(weight) + int64_t{c} * count + k);
  }
  // From any column on.
  __device__ __forceinline__ Weights(const W* weight, int64_t column, int64_t size) {
#pragma unroll
    for (int k = 0; k < count; ++k)
      bytes[k] = LoadedVector<W>(weight, column + k * each, size).cut();
  }

  __device__ __forceinline__ void numbers(Compute<T>* to) const {
#pragma unroll
    for (int k = 0; k < count; ++k) unpack<W>(bytes[k], to + k * each);
  }
};

// Calls `use(e, in)` for each element of a vector, with that element of each input.
template <typename T, int inputs, typename Use>
__device__ __forceinline__ void for_each_element(const uint4 (&bytes)[inputs], Use&& use) {
  Compute<T> numbers[inputs][Vector<T>::size];
#pragma unroll
  for (int i = 0; i < inputs; ++i) unpack<T>(bytes[i], numbers[i]);
#pragma unroll
  for (int e = 0; e < Vector<T>::size; ++e) {
    Compute<T> in[inputs];
#pragma unroll
    for (int i = 0; i < inputs; ++i) in[i] = numbers[i][e];
    use(e, in);
  }
}

// The outputs of one vector of elements.
template <typename T, typename W, typename Function, int inputs>
__device__ __forceinline__ void apply(const Function& function, const uint4 (&bytes)[inputs],
                                      const Weights<T, W>& weights,
                                      const typename Function::State& state,
                                      uint4 (&results)[Function::outputs]) {
  using C = Compute<T>;
  C factors[Vector<T>::size], numbers[Function::outputs][Vector<T>::size];
  weights.numbers(factors);
  for_each_element<T>(bytes, [&](int e, const C* in) {
    C out[Function::outputs];
    function.apply(in, factors[e], state, out);
#pragma unroll
    for (int o = 0; o < Function::outputs; ++o) numbers[o][e] = out[o];
  });
#pragma unroll
  for (int o = 0; o < Function::outputs; ++o) results[o] = pack<T>(numbers[o]);
}

// The sum of the terms of one vector of elements.
template <typename T, typename W, typename Function, int inputs>
__device__ __forceinline__ Compute<T> sum_terms(const Function& function,
                                                const uint4 (&bytes)[inputs],
                                                const Weights<T, W>& weights) {
  using C = Compute<T>;
  C factors[Vector<T>::size], sum = 0;
  weights.numbers(factors);
  for_each_element<T>(bytes, [&](int e, const C* in) { sum += function.term(in, factors[e]); });
  return sum;
}

template <typename Function, typename T, typename W, typename State>
__device__ __forceinline__ void keep_state(const RowArguments<Function, T, W>& problem, int64_t row,
                                           const State& state) {
  if constexpr (std::is_same_v<State, Compute<T>>) {
    if (problem.row_out) problem.row_out[row] = state;
  }
}

// --- rows of aligned vectors --------------------------------------

// `vectors` is what each of the `row_threads` threads of a row holds; `blocks` of them must fit on
// a multiprocessor at once, which bounds the registers. Rows of a few warps have their part of the
// weight on its way early; for longer ones, more blocks at once are worth more.
//
// Where `more`, rows may be longer: the rest is in shared memory, `capacity` vectors per thread,
// and what is longer still is read twice. Sums of the rest are made in float64.
template <typename Function, typename T, typename W, int threads, int row_threads, int vectors,
          int blocks, Caching caching, bool more>
__global__ void __launch_bounds__(threads, blocks)
    aligned_rows_kernel(RowArguments<Function, T, W> problem, int capacity) {
  using C = Compute<T>;
  constexpr int inputs = Function::inputs, outputs = Function::outputs;
  constexpr bool early = row_threads <= 256;
  static_assert(row_threads <= 32 || row_threads == threads);
  extern __shared__ uint4 buffer[];
  __shared__ C partial[32];
  __shared__ double more_partial[more ? 32 : 1];
  const int lane = threadIdx.x % row_threads;
  const int64_t row =
      static_cast<int64_t>(blockIdx.x) * (threads / row_threads) + threadIdx.x / row_threads;
  const bool is_row = row < problem.rows;
  const int row_vectors = is_row ? static_cast<int>(problem.size / Vector<T>::size) : 0;
  int64_t offsets[inputs] = {};
  if (is_row) row_offsets(problem.walk, row, offsets);
  const auto source = [&](int i) {
    return reinterpret_cast<const uint4*>(problem.in[i] + offsets[i]);
  };
  const auto weights = [&](int c) {
    return problem.weight && c < row_vectors ? Weights<T, W>(problem.weight, c) : Weights<T, W>();
  };

  uint4 own[vectors][inputs];
  Weights<T, W> early_weights[early ? vectors : 1];
#pragma unroll
  for (int j = 0; j < vectors; ++j) {
    const int c = j * row_threads + lane;
#pragma unroll
    for (int i = 0; i < inputs; ++i)
      own[j][i] = c < row_vectors ? load_vector<caching>(source(i) + c) : uint4{0, 0, 0, 0};
  }
  if constexpr (more) {
    for (int k = 0, c = vectors * row_threads + lane; k < capacity && c < row_vectors;
         ++k, c += row_threads) {
#pragma unroll
      for (int i = 0; i < inputs; ++i)
        copy_async(&buffer[(k * inputs + i) * threads + threadIdx.x], source(i) + c);
    }
    commit_copies();
  }
  if constexpr (early) {
#pragma unroll
    for (int j = 0; j < vectors; ++j) early_weights[j] = weights(j * row_threads + lane);
  }
  const auto weights_of = [&](int j) {
    return early ? early_weights[j] : weights(j * row_threads + lane);
  };
  // Calls `use(c, bytes)` for each vector of the rest.
  const auto for_each_more = [&](auto&& use) {
    for (int k = 0, c = vectors * row_threads + lane; c < row_vectors; ++k, c += row_threads) {
      uint4 bytes[inputs];
#pragma unroll
      for (int i = 0; i < inputs; ++i)
        bytes[i] = k < capacity ? buffer[(k * inputs + i) * threads + threadIdx.x] : source(i)[c];
      use(c, bytes);
    }
  };
  const auto store = [&](int c, const uint4(&results)[outputs]) {
#pragma unroll
    for (int o = 0; o < outputs; ++o)
      store_vector<caching>(reinterpret_cast<uint4*>(problem.out[o] + row * problem.size) + c,
                            results[o]);
  };

  C sum = 0;
#pragma unroll
  for (int j = 0; j < vectors; ++j) sum += sum_terms<T, W>(problem.function, own[j], weights_of(j));
  if constexpr (more) {
    wait_for_copies<0>();
    double total = sum;
    for_each_more([&](int c, const uint4(&bytes)[inputs]) {
      total += sum_terms<T, W>(problem.function, bytes, weights(c));
    });
    sum = static_cast<C>(sum_over_row<row_threads>(total, more_partial));
  } else {
    sum = sum_over_row<row_threads>(sum, partial);
  }
  const auto state =
      problem.function.finish(sum, problem.given && is_row ? problem.given[row] : C(0));
  if (lane == 0 && is_row) keep_state(problem, row, state);
  uint4 results[outputs];
#pragma unroll
  for (int j = 0; j < vectors; ++j) {
    apply<T, W>(problem.function, own[j], weights_of(j), state, results);
    if (j * row_threads + lane < row_vectors) store(j * row_threads + lane, results);
  }
  if constexpr (more) {
    for_each_more([&](int c, const uint4(&bytes)[inputs]) {
      apply<T, W>(problem.function, bytes, weights(c), state, results);
      store(c, results);
    });
  }
}

// --- rows of any length that start anywhere ----------------------

// The vectors of a row are those of the outputs, which are aligned alike; the row's first and last
// vector may be part of its neighbours'. What does not fit into registers is read twice. Long sums
// are made in float64.
template <typename Function, typename T, typename W, int threads, int row_threads, int vectors>
__global__ void __launch_bounds__(threads) any_rows_kernel(RowArguments<Function, T, W> problem) {
  using C = Compute<T>;
  constexpr int inputs = Function::inputs, outputs = Function::outputs;
  constexpr int vector_size = Vector<T>::size;
  static_assert(row_threads <= 32 || row_threads == threads);
  __shared__ double partial[32];
  const int lane = threadIdx.x % row_threads;
  const int64_t row =
      static_cast<int64_t>(blockIdx.x) * (threads / row_threads) + threadIdx.x / row_threads;
  const int64_t size = row < problem.rows ? problem.size : 0;
  int64_t offsets[inputs] = {};
  if (size > 0) row_offsets(problem.walk, row, offsets);
  const int64_t place = row * problem.size;  // of the row in the outputs
  const int lead =
      static_cast<int>(reinterpret_cast<uintptr_t>(problem.out[0] + place) % 16 / sizeof(T));
  const int row_vectors =
      size > 0 ? static_cast<int>((lead + size + vector_size - 1) / vector_size) : 0;

  const auto column_of = [&](int c) { return int64_t{c} * vector_size - lead; };
  const auto load = [&](int c, int i) {
    return LoadedVector<T>(problem.in[i] + offsets[i], column_of(c), size);
  };
  const auto load_weights = [&](int c) {
    return problem.weight ? Weights<T, W>(problem.weight, column_of(c), size) : Weights<T, W>();
  };
  const auto store = [&](int c, const uint4(&results)[outputs]) {
    const int64_t column = column_of(c);
#pragma unroll
    for (int o = 0; o < outputs; ++o) {
      T* out = problem.out[o] + place + column;
      if (column >= 0 && column + vector_size <= size) {
        *reinterpret_cast<uint4*>(out) = results[o];
        continue;
      }
      const Vector<T>& vector = *reinterpret_cast<const Vector<T>*>(&results[o]);
#pragma unroll
      for (int e = 0; e < vector_size; ++e) {
        if (column + e >= 0 && column + e < size) out[e] = vector.element[e];
      }
    }
  };
  // Calls `use(c, bytes)` for each vector that is not in registers.
  const auto for_each_more = [&](auto&& use) {
    for (int c = vectors * row_threads + lane; c < row_vectors; c += row_threads) {
      uint4 bytes[inputs];
#pragma unroll
      for (int i = 0; i < inputs; ++i) bytes[i] = load(c, i).cut();
      use(c, bytes);
    }
  };

  LoadedVector<T> loaded[vectors][inputs];
  Weights<T, W> weights[vectors];
#pragma unroll
  for (int j = 0; j < vectors; ++j) {
    const int c = j * row_threads + lane;
#pragma unroll
    for (int i = 0; i < inputs; ++i) {
      loaded[j][i].low = {0, 0, 0, 0};
      loaded[j][i].offset = 0;
      if (c < row_vectors) loaded[j][i] = load(c, i);
    }
  }
#pragma unroll
  for (int j = 0; j < vectors; ++j) {
    const int c = j * row_threads + lane;
    if (c < row_vectors) weights[j] = load_weights(c);
  }
  double sum = 0;
  uint4 own[vectors][inputs], results[outputs];
#pragma unroll
  for (int j = 0; j < vectors; ++j) {
#pragma unroll
    for (int i = 0; i < inputs; ++i) own[j][i] = loaded[j][i].cut();
    sum += sum_terms<T, W>(problem.function, own[j], weights[j]);
  }
  for_each_more([&](int c, const uint4(&bytes)[inputs]) {
    sum += sum_terms<T, W>(problem.function, bytes, load_weights(c));
  });
  sum = sum_over_row<row_threads>(sum, partial);
  const auto state = problem.function.finish(static_cast<C>(sum),
                                             problem.given && size > 0 ? problem.given[row] : C(0));
  if (lane == 0 && size > 0) keep_state(problem, row, state);
#pragma unroll
  for (int j = 0; j < vectors; ++j) {
    apply<T, W>(problem.function, own[j], weights[j], state, results);
    if (j * row_threads + lane < row_vectors) store(j * row_threads + lane, results);
  }
  for_each_more([&](int c, const uint4(&bytes)[inputs]) {
    apply<T, W>(problem.function, bytes, load_weights(c), state, results);
    store(c, results);
  });
}

// --- the launch --------------------------------------------------

// Whether every row of inputs and outputs is made of aligned vectors.
template <typename T, typename Function>
bool has_aligned_rows(const RowProblem& problem) {
  constexpr int size = Vector<T>::size;
  bool aligned = problem.size % size == 0;
  for (int i = 0; i < Function::inputs; ++i) {
    aligned &= is_aligned(problem.in[i]);
    for (int d = 0; d < problem.rows.dims; ++d) aligned &= problem.rows.strides[i][d] % size == 0;
  }
  for (int o = 0; o < Function::outputs; ++o) aligned &= is_aligned(problem.out[o]);
  return aligned;
}

// The shared memory that a block of `kernel` may have, asked once for each of the first 64 devices;
// 0 where it cannot be known.
template <auto kernel>
int shared_limit(int device) {
  constexpr int known_devices = 64, for_static = 1024;
  static std::atomic<int> known[known_devices] = {};
  int limit = device < known_devices ? known[device].load(std::memory_order_relaxed) : 0;
  if (limit > 0) return limit;
  if (cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) !=
          cudaSuccess ||
      cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                           cudaFuncAttributeMaxDynamicSharedMemorySize,
                           limit - for_static) != cudaSuccess) {
    cudaGetLastError();
    return 0;
  }
  limit -= for_static;
  if (device < known_devices) known[device].store(limit, std::memory_order_relaxed);
  return limit;
}

template <int threads, int row_threads, int vectors, int blocks = 1,
          Caching caching = Caching::usual, bool more = false, typename Function, typename T,
          typename W>
cudaError_t run_aligned_rows(const RowArguments<Function, T, W>& problem, Stream stream) {
  constexpr auto kernel =
      aligned_rows_kernel<Function, T, W, threads, row_threads, vectors, blocks, caching, more>;
  Grid grid{divide_up(problem.rows, threads / row_threads), threads};
  int capacity = 0;
  if constexpr (more) {
    constexpr int each = 16 * Function::inputs * threads;
    const int64_t rest = divide_up(problem.size / Vector<T>::size, row_threads) - vectors;
    const int64_t most = shared_limit<kernel>(stream.device) / each;
    capacity = static_cast<int>(std::max<int64_t>(0, std::min(rest, most)));
    grid.shared_bytes = capacity * each;
  }
  return launch<kernel>(grid, stream, problem, capacity);
}

template <int threads, int row_threads, int vectors, typename Function, typename T, typename W>
cudaError_t run_any_rows(const RowArguments<Function, T, W>& problem, Stream stream) {
  const Grid grid{divide_up(problem.rows, threads / row_threads), threads};
  return launch<any_rows_kernel<Function, T, W, threads, row_threads, vectors>>(grid, stream,
                                                                                problem);
}

// The threads, vectors and caching for each row length are chosen from a sweep on an H200, beside
// other people's kernels: with one policy for all, some lengths would lose 1 or 2 %.
template <typename T, typename W, typename Function>
cudaError_t run_rows(const Function& function, const RowProblem& problem, Stream stream) {
  if (problem.rows.numel == 0) return cudaSuccess;
  const RowArguments<Function, T, W> arguments(function, problem);
  const int64_t vectors = divide_up(problem.size, Vector<T>::size);
  if (has_aligned_rows<T, Function>(problem)) {
    if (vectors <= 16) return run_aligned_rows<128, 16, 1, 16>(arguments, stream);
    if constexpr (std::is_same_v<T, W> && !std::is_same_v<T, double>) {  // the usual types
      if (vectors <= 32) return run_aligned_rows<128, 32, 1>(arguments, stream);
      if (vectors > 128 && vectors <= 256) return run_aligned_rows<128, 128, 2>(arguments, stream);
      if (vectors > 512 && vectors <= 768)
        return run_aligned_rows<256, 256, 3, 5, Caching::result_first>(arguments, stream);
      if (vectors > 768 && vectors <= 1024)
        return run_aligned_rows<512, 512, 2, 3>(arguments, stream);
      if (vectors > 2048 && vectors <= 2560)
        return run_aligned_rows<512, 512, 5, 2>(arguments, stream);
      if (vectors > 2560 && vectors <= 4096) {
        if constexpr (std::is_same_v<T, float>) {
          return run_aligned_rows<512, 512, 8, 2>(arguments, stream);
        } else {
          return run_aligned_rows<1024, 1024, 4, 1, Caching::result_first>(arguments, stream);
        }
      }
    }
    if (vectors <= 128) return run_aligned_rows<64, 64, 2>(arguments, stream);
    if (vectors <= 512) return run_aligned_rows<256, 256, 2, 5>(arguments, stream);
    if (vectors <= 2048) return run_aligned_rows<512, 512, 4, 2>(arguments, stream);
    return run_aligned_rows<1024, 1024, 5, 1, Caching::usual, true>(arguments, stream);
  }
  // A row off its alignment may have one vector more, which is then read twice.
  if (vectors <= 16) return run_any_rows<128, 8, 2>(arguments, stream);
  if (vectors <= 128) return run_any_rows<64, 64, 2>(arguments, stream);
  if (vectors <= 640) return run_any_rows<128, 128, 5>(arguments, stream);
  if (vectors <= 1024) return run_any_rows<256, 256, 4>(arguments, stream);
  return run_any_rows<512, 512, 4>(arguments, stream);
}

}  // namespace opwright
