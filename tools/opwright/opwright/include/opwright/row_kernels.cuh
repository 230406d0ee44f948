// Kernels for row ops.
//
// No access reaches past the ends of a row: rows are moved in accesses of 16 bytes if all of them
// start and end at multiples of 16, and in narrower ones otherwise. One block takes one row, or
// several short ones. GPUs hand out blocks to whichever multiprocessor is free, which is faster
// than blocks that walk over rows (3.9 TB/s against 3.6 on an H200). row_long.cuh has the
// kernel for long rows, row_columns.cuh those that also sum over the rows.
#pragma once

#include <algorithm>

#include "row_access.cuh"
#include "rows.h"

namespace opwright {

template <typename Function, typename T>
struct RowArguments {
  using C = Compute<T>;
  Function function;
  const T* in[Function::inputs];
  const void* weight;
  const C* given;
  const T* added;
  T *sum, *out[Function::outputs];
  C *row_out, *partial;
  int64_t rows, size;
  C offset;
  bool wide_weight;
  Walk<Function::inputs> walk;

  RowArguments(const Function& op, const RowProblem& problem)
      : function(op),
        weight(problem.weight),
        given(static_cast<const C*>(problem.given)),
        added(static_cast<const T*>(problem.added)),
        sum(static_cast<T*>(problem.sum)),
        row_out(static_cast<C*>(problem.row_out)),
        partial(static_cast<C*>(problem.column_out ? problem.partial : nullptr)),
        rows(problem.rows.numel),
        size(problem.size),
        offset(static_cast<C>(problem.weight_offset)),
        wide_weight(problem.wide_weight),
        walk(problem.rows) {
    for (int i = 0; i < Function::inputs; ++i) in[i] = static_cast<const T*>(problem.in[i]);
    for (int o = 0; o < Function::outputs; ++o) out[o] = static_cast<T*>(problem.out[o]);
  }
};

// Loads the weights of access `c` of a row and adds the offset. They are of type T, or of the
// compute type if `wide`.
template <typename T, int bytes, typename Arguments>
__device__ __forceinline__ void load_weights(const Arguments& problem, bool wide, int64_t c,
                                             Compute<T>* weights) {
  using C = Compute<T>;
  constexpr int count = bytes / sizeof(T);
  if (std::is_same_v<T, C> || wide) {
    constexpr int part = count * sizeof(C) < 16 ? count * sizeof(C) : 16;
    constexpr int parts = count * sizeof(C) / part;
#pragma unroll
    for (int k = 0; k < parts; ++k)
      unpack<C>(__ldg(static_cast<const Bits<part>*>(problem.weight) + c * parts + k),
                weights + k * (part / sizeof(C)));
#pragma unroll
    for (int e = 0; e < count; ++e) weights[e] += problem.offset;
  } else {
    unpack<T>(__ldg(static_cast<const Bits<bytes>*>(problem.weight) + c), weights);
  }
}

// Calls `use(e, in)` for each element of an access, with that element of each input.
template <typename T, int inputs, typename Bits, typename Use>
__device__ __forceinline__ void for_each_element(const Bits (&bits)[inputs], Use&& use) {
  constexpr int count = sizeof(Bits) / sizeof(T);
  Compute<T> numbers[inputs][count];
#pragma unroll
  for (int i = 0; i < inputs; ++i) unpack<T>(bits[i], numbers[i]);
#pragma unroll
  for (int e = 0; e < count; ++e) {
    Compute<T> in[inputs];
#pragma unroll
    for (int i = 0; i < inputs; ++i) in[i] = numbers[i][e];
    use(e, in);
  }
}

// The outputs of one access.
template <typename T, typename Function, int inputs, typename Bits>
__device__ __forceinline__ void apply(const Function& function, const Bits (&bits)[inputs],
                                      const Compute<T>* weights,
                                      const typename Function::State& state,
                                      Bits (&results)[Function::outputs]) {
  using C = Compute<T>;
  constexpr int count = sizeof(Bits) / sizeof(T);
  C numbers[Function::outputs][count];
  for_each_element<T>(bits, [&](int e, const C* in) {
    C out[Function::outputs];
    function.apply(in, weights[e], state, out);
#pragma unroll
    for (int o = 0; o < Function::outputs; ++o) numbers[o][e] = out[o];
  });
#pragma unroll
  for (int o = 0; o < Function::outputs; ++o) results[o] = pack<T, Bits>(numbers[o]);
}

template <typename T, typename Function, int inputs, typename Bits>
__device__ __forceinline__ Compute<T> sum_terms(const Function& function,
                                                const Bits (&bits)[inputs],
                                                const Compute<T>* weights) {
  using C = Compute<T>;
  C sum = 0;
  for_each_element<T>(bits, [&](int e, const C* in) { sum += function.term(in, weights[e]); });
  return sum;
}

// The threads that share a row: part of a warp or a block, with as many threads as the row needs,
// or a block of fixed size, which takes fewer instructions per access.
enum class Team { part_of_warp, block, full_block };

// How rows of certain lengths are divided: each of a row's threads has `vectors` accesses of
// `bytes` bytes, in blocks of at most `threads`. `blocks` full-size blocks must fit on a
// multiprocessor at once, which bounds the registers. `adds`: the kernel can add a residual.
template <int bytes_, int threads_, Team team_, int vectors_, int blocks_ = 1, bool adds_ = false>
struct RowShape {
  static constexpr int bytes = bytes_, threads = threads_, vectors = vectors_, blocks = blocks_;
  static constexpr Team team = team_;
  static constexpr bool adds = adds_, fixed = team == Team::full_block;
  static constexpr bool has_block = team != Team::part_of_warp;  // each row has its own
  // Whether a thread loads its weights of type T early and keeps them packed to save registers.
  // With more vectors per thread, more blocks at once gain more.
  static constexpr bool early = vectors <= 2 || !has_block;
};

// The threads of a block for a row of `accesses` accesses, in whole warps.
template <typename Shape>
int threads_of(int64_t accesses) {
  if (!Shape::has_block || Shape::fixed) return Shape::threads;
  const int64_t needed = divide_up(divide_up(accesses, Shape::vectors), 32) * 32;
  return static_cast<int>(std::min<int64_t>(needed, Shape::threads));
}

// Whether blocks for such rows keep nine tenths of a multiprocessor's `threads` threads busy.
template <typename Shape>
bool fills(int64_t accesses, int threads) {
  const int block = threads_of<Shape>(accesses);
  return threads / block * accesses * 10 >= int64_t{9} * threads * Shape::vectors;
}

template <typename Function, typename T, typename Shape>
__global__ void __launch_bounds__(Shape::threads, Shape::blocks)
    rows_kernel(RowArguments<Function, T> problem, int row_bits) {
  using C = Compute<T>;
  using Access = Bits<Shape::bytes>;
  constexpr int count = Shape::bytes / sizeof(T);  // elements of an access
  constexpr int inputs = Function::inputs, outputs = Function::outputs, vectors = Shape::vectors;
  // A block of variable size addresses its row by the thread's offset; with constant strides, a
  // pointer for each thread is faster.
  constexpr bool is_any = Shape::has_block && !Shape::fixed;
  const int threads = is_any ? static_cast<int>(blockDim.x) : Shape::threads;
  const int row_threads = Shape::has_block ? threads : 1 << row_bits;
  constexpr bool early = Shape::early;
  __shared__ C partial[32];
  const int lane = is_any ? threadIdx.x : threadIdx.x % row_threads;
  const int64_t row =
      is_any ? int64_t{blockIdx.x}
             : int64_t{blockIdx.x} * (threads / row_threads) + threadIdx.x / row_threads;
  const bool is_row = row < problem.rows;
  const int row_vectors = is_row ? static_cast<int>(problem.size / count) : 0;
  int64_t offsets[inputs] = {};
  if (is_row) row_offsets(problem.walk, row, offsets);
  const auto source = [&](int i) {
    return reinterpret_cast<const Access*>(problem.in[i] + offsets[i]);
  };
  const bool wide = !std::is_same_v<T, C> && problem.wide_weight;
  const auto is_weight = [&](int c) { return problem.weight && c < row_vectors; };
  // Finds the weights of access `c`: ones if there is no weight.
  const auto find_weights = [&](int c, C(&weights)[count]) OPWRIGHT_ALWAYS {
#pragma unroll
    for (int e = 0; e < count; ++e) weights[e] = 1;
    if (is_weight(c)) load_weights<T, Shape::bytes>(problem, wide, c, weights);
  };

  Access own[vectors][inputs];
  Access early_weights[early ? vectors : 1];
#pragma unroll
  for (int j = 0; j < vectors; ++j) {
    const int c = j * row_threads + lane;
#pragma unroll
    for (int i = 0; i < inputs; ++i) own[j][i] = c < row_vectors ? source(i)[c] : Access{};
  }
  const int64_t place = row * problem.size;  // of the results
  const bool adding = Shape::adds && problem.added;
  Access added[Shape::adds ? vectors : 1];
  if (adding) {
#pragma unroll
    for (int j = 0; j < vectors; ++j) {
      const int c = j * row_threads + lane;
      if (c < row_vectors) added[j] = reinterpret_cast<const Access*>(problem.added + place)[c];
    }
  }
  if constexpr (early) {
    C ones[count];
#pragma unroll
    for (int e = 0; e < count; ++e) ones[e] = 1;
#pragma unroll
    for (int j = 0; j < vectors; ++j) {
      const int c = j * row_threads + lane;
      early_weights[j] = !wide && is_weight(c)
                             ? __ldg(static_cast<const Access*>(problem.weight) + c)
                             : pack<T, Access>(ones);
    }
  }
  const auto find_own_weights = [&](int j, C(&weights)[count]) OPWRIGHT_ALWAYS {
    if (!early || wide) return find_weights(j * row_threads + lane, weights);
    unpack<T>(early_weights[j], weights);
    if constexpr (std::is_same_v<T, C>) {
#pragma unroll
      for (int e = 0; e < count; ++e) weights[e] += problem.offset;
    }
  };
  if (adding && Function::added == Added::to_input) {
#pragma unroll
    for (int j = 0; j < vectors; ++j) {
      const int c = j * row_threads + lane;
      if (c >= row_vectors) continue;
      own[j][0] = add_elements<T>(own[j][0], added[j]);
      reinterpret_cast<Access*>(problem.sum + place)[c] = own[j][0];
    }
  }

  C sum = 0, factors[count];
#pragma unroll
  for (int j = 0; j < vectors; ++j) {
    find_own_weights(j, factors);
    sum += sum_terms<T>(problem.function, own[j], factors);
  }
  sum = Shape::has_block ? sum_over_block(sum, partial) : sum_over_part(sum, row_threads);
  const auto state =
      problem.function.finish(sum, problem.given && is_row ? problem.given[row] : C(0));
  if constexpr (std::is_same_v<typename Function::State, C>) {
    if (lane == 0 && is_row && problem.row_out) problem.row_out[row] = state;
  }
#pragma unroll
  for (int j = 0; j < vectors; ++j) {
    const int c = j * row_threads + lane;
    Access results[outputs];
    find_own_weights(j, factors);
    apply<T>(problem.function, own[j], factors, state, results);
    if (c >= row_vectors) continue;
#pragma unroll
    for (int o = 0; o < outputs; ++o)
      reinterpret_cast<Access*>(problem.out[o] + place)[c] = results[o];
  }
}

// --- the launch --------------------------------------------------

// The widest access, up to 16 bytes, to which every row of inputs and outputs is aligned.
template <typename T, typename Function>
int access_bytes(const RowProblem& problem) {
  uint64_t addresses = 16 | static_cast<uint64_t>(problem.size) * sizeof(T);
  for (int i = 0; i < Function::inputs; ++i) {
    addresses |= reinterpret_cast<uintptr_t>(problem.in[i]);
    for (int d = 0; d < problem.rows.dims; ++d)
      addresses |= static_cast<uint64_t>(problem.rows.strides[i][d]) * sizeof(T);
  }
  for (int o = 0; o < Function::outputs; ++o)
    addresses |= reinterpret_cast<uintptr_t>(problem.out[o]);
  addresses |=
      reinterpret_cast<uintptr_t>(problem.added) | reinterpret_cast<uintptr_t>(problem.sum);
  return static_cast<int>(addresses & (~addresses + 1));
}

// Allows a block of `kernel` the wanted shared memory, or as much as the device has. Returns the
// amount, or 0 if it is unknown. The answer is kept for each of the first 64 devices.
template <auto kernel>
int allow_shared(int wanted, int device) {
  constexpr int known_devices = 64, for_static = 1024;
  static std::atomic<int> known[known_devices] = {};
  int limit = device < known_devices ? known[device].load(std::memory_order_relaxed) : 0;
  if (limit > 0) return limit;
  if (cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) !=
      cudaSuccess) {
    cudaGetLastError();
    return 0;
  }
  limit = std::min(limit - for_static, wanted);
  if (cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                           cudaFuncAttributeMaxDynamicSharedMemorySize, limit) != cudaSuccess) {
    cudaGetLastError();
    return 0;
  }
  if (device < known_devices) known[device].store(limit, std::memory_order_relaxed);
  return limit;
}

template <typename Shape, typename Function, typename T>
cudaError_t run_shape(const RowArguments<Function, T>& problem, Stream stream) {
  const int64_t accesses = problem.size * sizeof(T) / Shape::bytes;
  Grid grid{problem.rows, threads_of<Shape>(accesses)};
  int row_bits = 0;
  if constexpr (!Shape::has_block) {
    while (int64_t{Shape::vectors} << row_bits < accesses) ++row_bits;
    grid.blocks = divide_up(problem.rows, Shape::threads >> row_bits);
  }
  return launch<rows_kernel<Function, T, Shape>>(grid, stream, problem, row_bits);
}

}  // namespace opwright
