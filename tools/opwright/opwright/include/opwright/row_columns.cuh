// Kernels for row ops that also sum over the rows, for each column.
//
// The inputs are read once: as many blocks as fit walk over the rows and keep the column sums in
// registers while the next rows are copied to shared memory. Each block writes one partial sum per
// column; sum_partials_kernel adds them up, always in the same order. A thread reads from shared
// memory only what it has copied itself, so the copies need no barrier.
//
// On GPUs from 9.0 on, the blocks of a cluster share a row that is too long for one block and
// exchange their sums. On older GPUs, and for even longer rows, the inputs are read twice: by
// long_rows_kernel and by long_columns_kernel.
#pragma once

#include "row_long.cuh"

namespace opwright {

// How rows of certain lengths are divided among threads (see RowShape). `stages` rows are copied to
// shared memory at once; with no stage, a row is loaded straight into registers, and other blocks
// on the multiprocessor hide the latency.
// `in_registers`: a row moves from shared memory to registers before it is summed, so that the next
// copies can start early.
template <int bytes_, int threads_, int row_threads_, int vectors_, int stages_, bool in_registers_,
          int blocks_, bool adds_ = false>
struct ColumnShape {
  static constexpr int bytes = bytes_, threads = threads_, row_threads = row_threads_,
                       vectors = vectors_, stages = stages_;
  static constexpr bool in_registers = in_registers_ || stages == 0;
  static constexpr int blocks = blocks_;  // the most full-size blocks on one multiprocessor
  static constexpr int fitting = stages == 0 ? blocks : 0;  // the fewest: bounds the registers
  static constexpr bool has_block = row_threads > 32, fixed = false;
  static constexpr int rows = threads / row_threads;
  static constexpr bool adds = adds_;
};

// Whether a kernel has a body on a GPU; kernels that are never launched there are empty. Long rows,
// which stay in shared memory, go to clusters on GPUs from 9.0 on and to single blocks before.
template <typename Shape, bool clustered>
OPWRIGHT_FUNCTION constexpr bool is_compiled(int gpu) {
  return gpu >= 900 ? clustered || Shape::in_registers : !clustered;
}

template <typename Function, typename T, typename Shape, bool clustered>
__global__ void __launch_bounds__(Shape::threads, Shape::fitting)
    columns_kernel(RowArguments<Function, T> problem) {
#if defined(__CUDA_ARCH__)
  if constexpr (!is_compiled<Shape, clustered>(__CUDA_ARCH__)) return;  // is never launched
#endif
  using C = Compute<T>;
  using Access = Bits<Shape::bytes>;
  constexpr int inputs = Function::inputs, outputs = Function::outputs;
  constexpr int vectors = Shape::vectors, stages = Shape::stages;
  // A cluster's sum takes about as long as a row. If rows stay in shared memory, the previous row
  // is finished meanwhile.
  constexpr bool deferred = clustered && !Shape::in_registers;
  const int threads = Shape::has_block ? static_cast<int>(blockDim.x) : Shape::threads;
  const int row_threads = Shape::has_block ? threads : Shape::row_threads;
  constexpr int count = Shape::bytes / sizeof(T);  // elements of an access
  extern __shared__ uint4 buffer[];
  __shared__ C sums[2][32], cluster_sums[2][max_cluster];
  const Cluster cluster;
  // Loads into registers are addressed by the block's row and the thread's offset. For staged rows,
  // ptxas must not know that the whole block shares a row: it would put branches around the copies.
  constexpr bool is_uniform = Shape::has_block && stages == 0;
  const int lane = is_uniform ? threadIdx.x : threadIdx.x % row_threads;
  const int group = is_uniform ? 0 : threadIdx.x / row_threads;
  const int64_t most =
      clustered ? divide_up(problem.size / count, cluster.size) * count : problem.size;
  const int64_t begin = clustered ? cluster.rank * most : 0;
  const int64_t size = min(most, max(problem.size - begin, int64_t{0}));
  const int row_vectors = static_cast<int>(size / count);
  const int64_t blocks = clustered ? gridDim.x / cluster.size : gridDim.x;
  const int64_t block = clustered ? blockIdx.x / cluster.size : blockIdx.x;
  const int64_t step = blocks * Shape::rows;
  if constexpr (clustered) cluster.meet();  // every block's shared memory must exist

  Access own[Shape::in_registers ? vectors : 1][inputs];
  const auto at = [&](int stage, int i, int j) -> Access& {
    return reinterpret_cast<Access*>(
        buffer)[((stage * inputs + i) * vectors + j) * threads + threadIdx.x];
  };
  const bool adding = Shape::adds && Function::added == Added::to_output && problem.added;
  Access added[Shape::adds ? vectors : 1];
  const int next_lane = is_uniform ? 0 : lane;
  const Access* next[inputs];  // the row to fetch, from `next_lane` on
  bool has_next;
  const auto find_next = [&](int64_t row) OPWRIGHT_ALWAYS {
    has_next = row < problem.rows;
    int64_t offsets[inputs];
    row_offsets(problem.walk, has_next ? row : 0, offsets);
#pragma unroll
    for (int i = 0; i < inputs; ++i)
      next[i] = reinterpret_cast<const Access*>(problem.in[i] + offsets[i] + begin) + next_lane;
  };
  const auto fetch_vector = [&](int stage, int i, int j) OPWRIGHT_ALWAYS {
    const int c = j * row_threads + lane;
    const bool is_own = has_next & (c < row_vectors);
    const Access* from = next[i] + (c - next_lane);
    if constexpr (stages == 0) {
      own[j][i] = is_own ? __ldg(from) : Access{};
    } else {
      if (!is_own) from = reinterpret_cast<const Access*>(problem.in[i]);
      copy_async(&at(stage, i, j), from, is_own);
    }
  };
  const auto fetch = [&](int stage) OPWRIGHT_ALWAYS {
#pragma unroll
    for (int i = 0; i < inputs; ++i) {
#pragma unroll
      for (int j = 0; j < vectors; ++j) fetch_vector(stage, i, j);
    }
    commit_copies();
  };

  int64_t first = block * Shape::rows;
#pragma unroll 1
  for (int s = 0; s < stages; ++s) {
    find_next(first + s * step + group);
    fetch(s);
  }
  alignas(16) C weights[vectors][count], columns[vectors][count];
#pragma unroll
  for (int j = 0; j < vectors; ++j) {
    const int c = j * row_threads + lane;
#pragma unroll
    for (int e = 0; e < count; ++e) weights[j][e] = 1, columns[j][e] = 0;
    if (problem.weight && c < row_vectors)
      load_weights<T, Shape::bytes>(problem, problem.wide_weight, begin / count + c, weights[j]);
  }

  const auto read = [&](int stage, int j, Access(&bits)[inputs]) OPWRIGHT_ALWAYS {
#pragma unroll
    for (int i = 0; i < inputs; ++i) bits[i] = at(stage, i, j);
  };
  // The thread's part of the sum over the row. Starts the next copies if the row is in registers.
  const auto sum_own = [&](int stage) OPWRIGHT_ALWAYS {
    C sum = 0;
    if constexpr (Shape::in_registers) {
      if constexpr (stages > 0) {
#pragma unroll
        for (int j = 0; j < vectors; ++j) read(stage, j, own[j]);
        fetch(stage);
      }
#pragma unroll
      for (int j = 0; j < vectors; ++j) sum += sum_terms<T>(problem.function, own[j], weights[j]);
    } else {
#pragma unroll
      for (int j = 0; j < vectors; ++j) {
        Access bits[inputs];
        read(stage, j, bits);
        sum += sum_terms<T>(problem.function, bits, weights[j]);
      }
    }
    return sum;
  };
  // Loads what is added to a row's results, ahead of their use.
  const auto fetch_added = [&](int64_t row) OPWRIGHT_ALWAYS {
    if (!adding || row >= problem.rows) return;
    const auto* from =
        reinterpret_cast<const Access*>(problem.added + row * problem.size + begin) + lane;
#pragma unroll
    for (int j = 0; j < vectors; ++j) {
      if (j * row_threads + lane < row_vectors) added[j] = from[j * row_threads];
    }
  };
  // Writes a row's results and adds to the column sums. If the row is in shared memory, the next
  // copies take its place.
  const auto finish = [&](int64_t row, int stage, C given, C sum) OPWRIGHT_ALWAYS {
    const int own_vectors = row < problem.rows ? row_vectors : 0;
    const auto state = problem.function.finish(sum, given);
    const int64_t place = row * problem.size + begin;  // of the results
#pragma unroll
    for (int j = 0; j < vectors; ++j) {
      const int c = j * row_threads + lane;
      Access bits[inputs], results[outputs];
      if constexpr (Shape::in_registers) {
#pragma unroll
        for (int i = 0; i < inputs; ++i) bits[i] = own[j][i];
      } else {
        read(stage, j, bits);
        fetch_vector(stage, 0, j);
      }
      if (c >= own_vectors) continue;
      for_each_element<T>(
          bits, [&](int e, const C* in) { columns[j][e] += problem.function.column(in, given); });
      apply<T>(problem.function, bits, weights[j], state, results);
      if (adding) results[0] = add_elements<T>(results[0], added[j]);
#pragma unroll
      for (int o = 0; o < outputs; ++o) {
        if (problem.out[o]) reinterpret_cast<Access*>(problem.out[o] + place)[c] = results[o];
      }
    }
    if constexpr (!Shape::in_registers) {
#pragma unroll
      for (int i = 1; i < inputs; ++i) {
#pragma unroll
        for (int j = 0; j < vectors; ++j) fetch_vector(stage, i, j);
      }
      commit_copies();
    }
  };

  constexpr int ahead = deferred ? stages - 1 : stages;  // rows being copied
  const int64_t start = first, end = problem.rows + (deferred ? step : 0);
  C next_given = first + group < problem.rows ? problem.given[first + group] : C(0);
  C given_before = 0;
  for (int stage = 0, before = 0, turn = 0; first < end; first += step, turn ^= 1) {
    const int64_t row = first + group;
    const bool is_row = !deferred || first < problem.rows;
    const C given = next_given;
    if (row + step < problem.rows) next_given = problem.given[row + step];
    find_next(row + ahead * step);
    C sum = 0;
    if constexpr (stages == 0) fetch(0);
    if (!deferred || first > start) fetch_added(deferred ? row - step : row);
    if (is_row) {
      if constexpr (stages > 0) wait_for_copies<ahead - 1>();
      sum = sum_over_row<Shape::row_threads>(sum_own(stage), sums[turn]);
    }
    if constexpr (deferred) {
      const C sum_before = first > start ? cluster.sum(cluster_sums[turn ^ 1]) : C(0);
      if (is_row) cluster.send(sum, cluster_sums[turn]);
      if (first > start) finish(row - step, before, given_before, sum_before);
      given_before = given;
      before = stage;
    } else {
      if constexpr (clustered) {
        cluster.send(sum, cluster_sums[turn]);
        sum = cluster.sum(cluster_sums[turn]);
      }
      finish(row, stage, given, sum);
    }
    stage = stage + 1 >= stages ? 0 : stage + 1;
  }
  if (!problem.partial) return;

  // Writes the block's partial sums. Threads with the same columns add theirs up in shared memory.
  C* partial = problem.partial + block * problem.size + begin;
  if constexpr (Shape::rows > 1) {
    auto* shared = reinterpret_cast<C*>(buffer);
    wait_for_copies<0>();
    __syncthreads();
#pragma unroll
    for (int j = 0; j < vectors; ++j) {
#pragma unroll
      for (int e = 0; e < count; ++e)
        shared[(j * count + e) * threads + threadIdx.x] = columns[j][e];
    }
    __syncthreads();
    for (int i = threadIdx.x; i < vectors * count * row_threads; i += threads) {
      const int at_place = i / row_threads, other_lane = i % row_threads;
      const int c = at_place / count * row_threads + other_lane;
      if (c >= row_vectors) continue;
      C sum = 0;
      for (int g = 0; g < Shape::rows; ++g)
        sum += shared[at_place * threads + g * row_threads + other_lane];
      partial[c * count + at_place % count] = sum;
    }
  } else {
    constexpr int all = count * sizeof(C), part = all < 16 ? all : 16;
#pragma unroll
    for (int j = 0; j < vectors; ++j) {
      const int c = j * row_threads + lane;
      if (c >= row_vectors) continue;
#pragma unroll
      for (int k = 0; k < all / part; ++k)
        reinterpret_cast<Bits<part>*>(partial + c * count)[k] =
            reinterpret_cast<const Bits<part>*>(columns[j])[k];
    }
  }
}

// One column per thread, and one part of the rows per block.
template <typename Function, typename T>
__global__ void __launch_bounds__(threads_per_block)
    long_columns_kernel(RowArguments<Function, T> problem, int column_blocks, int parts) {
  using C = Compute<T>;
  constexpr int inputs = Function::inputs;
  const int64_t column =
      static_cast<int64_t>(blockIdx.x % column_blocks) * threads_per_block + threadIdx.x;
  const int part = static_cast<int>(blockIdx.x) / column_blocks;
  if (column >= problem.size) return;
  constexpr int together = 4;  // rows loaded at once
  C sum = 0;
  for (int64_t first = part; first < problem.rows; first += int64_t{together} * parts) {
    C in[together][inputs], given[together];
#pragma unroll
    for (int t = 0; t < together; ++t) {
      const int64_t row = first + int64_t{t} * parts;
      const bool is_row = row < problem.rows;
      int64_t offsets[inputs] = {};
      if (is_row) row_offsets(problem.walk, row, offsets);
      given[t] = is_row ? problem.given[row] : C(0);
#pragma unroll
      for (int i = 0; i < inputs; ++i)
        in[t][i] = is_row ? load(problem.in[i][offsets[i] + column]) : C(0);
    }
#pragma unroll
    for (int t = 0; t < together; ++t) sum += problem.function.column(in[t], given[t]);
  }
  problem.partial[part * problem.size + column] = sum;
}

// 32 columns per block; each warp adds every 32nd partial sum.
template <typename C, typename W>
__global__ void __launch_bounds__(1024)
    sum_partials_kernel(const C* partial, W* column_out, int partials, int64_t size) {
  __shared__ C sums[32][33];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int64_t column = int64_t{blockIdx.x} * 32 + lane;
  C sum = 0;
  if (column < size) {
#pragma unroll 8
    for (int p = warp; p < partials; p += 32) sum += partial[p * size + column];
  }
  sums[warp][lane] = sum;
  __syncthreads();
  sum = sum_over_row<32>(sums[lane][warp], sums[0]);
  const int64_t own = int64_t{blockIdx.x} * 32 + warp;
  if (lane == 0 && own < size) column_out[own] = store<W>(sum);
}

// --- the launch --------------------------------------------------

template <typename Function, typename T, typename Shape>
constexpr int shared_bytes(int threads = Shape::threads) {
  const int staged = Shape::stages * Function::inputs * Shape::vectors * threads * Shape::bytes;
  const int summed = Shape::vectors * (Shape::bytes / static_cast<int>(sizeof(T))) *
                     Shape::threads * static_cast<int>(sizeof(Compute<T>));
  return Shape::rows > 1 ? std::max(staged, summed) : staged;
}

// How many blocks or clusters of a kernel fit on the device at once; 0 if the device cannot run the
// kernel or the kernel is empty. The answer is kept for each of the first 64 devices, each cluster
// size and each block size.
template <auto kernel, typename Shape, bool clustered>
int64_t fitting_blocks(Grid grid, int cluster, int device) {
  constexpr int known_devices = 64;
  static std::atomic<int16_t> known[known_devices][clustered ? max_cluster : 1]
                                   [Shape::threads / 32] = {};
  auto* answer =
      device < known_devices ? &known[device][cluster - 1][grid.threads / 32 - 1] : nullptr;
  if (answer && *answer > 0) return *answer - 1;  // 0 means not asked yet
  int blocks = 0, multiprocessors = 0;
  const auto* function = reinterpret_cast<const void*>(kernel);
  // Ask the kernel, not the device: a newer GPU may run code that was compiled for an older one.
  cudaFuncAttributes attributes;
  cudaError_t error = cudaFuncGetAttributes(&attributes, function);
  if (error == cudaSuccess && !is_compiled<Shape, clustered>(attributes.ptxVersion * 10))
    error = cudaErrorNotSupported;
  if (error == cudaSuccess && grid.shared_bytes > 0 &&
      allow_shared<kernel>(INT_MAX, device) < grid.shared_bytes)
    error = cudaErrorInvalidConfiguration;
  if (error == cudaSuccess && clustered) {
    cudaLaunchAttribute attribute;
    const auto config = cluster_config(attribute, grid, cluster, nullptr);
    error = cudaFuncSetAttribute(function, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    if (error == cudaSuccess) error = cudaOccupancyMaxActiveClusters(&blocks, function, &config);
  } else if (error == cudaSuccess) {
    error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, grid.threads,
                                                          grid.shared_bytes);
    if (error == cudaSuccess)
      error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
    blocks = std::min(blocks, Shape::blocks * Shape::threads / grid.threads) * multiprocessors;
  }
  if (error != cudaSuccess) {
    cudaGetLastError();
    blocks = 0;
  }
  if (answer) *answer = static_cast<int16_t>(blocks + 1);
  return blocks;
}

// How a problem is divided: among the `blocks` blocks or clusters of columns_kernel, or into
// `parts` parts for the kernels that read the inputs twice.
struct ColumnPlan {
  int64_t blocks = 0;
  bool has_clusters = false;
  int column_blocks = 0, parts = 0;

  int64_t partials() const { return blocks > 0 ? blocks : parts; }
};

// Calls `use(shape, clustered, cluster, threads)` with the shape for rows of `row_bytes` bytes and
// accesses of at most `bytes`, to which a tensor is added or not, on a GPU with or without
// clusters. Returns the call's result, or false if there is no such shape. The shapes come from a
// sweep on an H200; many lengths share one to keep the library small.
template <typename T, typename Use>
bool with_shape(int64_t row_bytes, int bytes, bool adding, bool has_clusters, Use&& use) {
  constexpr bool is_short = sizeof(T) == 2;
  const auto use_block = [&](auto shape) {
    using Shape = decltype(shape);
    return use(shape, std::false_type{}, 1, threads_of<Shape>(row_bytes / Shape::bytes));
  };
  // Uses the smallest cluster of small blocks, several of which fit on a multiprocessor, or else of
  // large blocks.
  [[maybe_unused]] const auto use_cluster = [&](auto shape) {
    using Shape = decltype(shape);
    const int64_t accesses = row_bytes / Shape::bytes;
    for (int most = Shape::in_registers ? Shape::threads : Shape::threads / 2;
         has_clusters && most <= Shape::threads; most *= 2) {
      const int cluster = std::max(static_cast<int>(divide_up(accesses, Shape::vectors * most)), 2);
      if (cluster <= max_cluster)
        return use(shape, std::true_type{}, cluster,
                   threads_of<Shape>(divide_up(accesses, cluster)));
    }
    return false;
  };
  if constexpr (sizeof(T) <= 4) {
    using Narrow = ColumnShape<8, 512, 512, 5, 2, true, 2, true>;
    if (bytes == 16) {
      const int64_t vectors = row_bytes / 16;
      using Single = ColumnShape<16, 1024, 1024, 1, 1, true, 1, true>;
      if (vectors <= 16) return use_block(ColumnShape<16, 256, 16, 1, 2, true, 4, true>{});
      if (vectors <= 64) return use_block(ColumnShape<16, 128, 32, 2, 2, true, 16, true>{});
      if (vectors <= 1024 && fills<Single>(vectors, 1024)) return use_block(Single{});
      if (vectors <= 1024) return use_block(ColumnShape<16, 512, 512, 2, 2, true, 1, true>{});
      if (vectors <= 1280) return use_block(Narrow{});
      // Of 16-bit elements, a thread that adds has registers for fewer.
      if constexpr (is_short) {
        if (has_clusters && adding)
          return use_cluster(ColumnShape<16, 512, 512, 3, 3, false, 1, true>{});
      }
      if (has_clusters) return use_cluster(ColumnShape<16, 512, 512, 4, 3, false, 1, !is_short>{});
      if (vectors <= 2048) return use_block(ColumnShape<16, 512, 512, 4, 1, false, 1, true>{});
      if constexpr (!is_short) {
        if (vectors <= 4096) return use_block(ColumnShape<16, 512, 512, 8, 1, false, 1, true>{});
      }
      return false;
    }
    if (bytes == 8 && row_bytes > 512) {
      if (row_bytes <= 2560 * 8) return use_block(Narrow{});
      if constexpr (is_short) return use_cluster(ColumnShape<8, 512, 512, 4, 3, false, 1>{});
    }
  }
  constexpr int one = sizeof(T);
  if (row_bytes <= 256 * one) {
    return use_block(ColumnShape < one, 128, 32, 8, 0, true, 16 / one, one == 4 > {});
  }
  const auto use_one = [&](auto shape) {
    if (row_bytes <= 4096 * one) return use_block(shape);
    if constexpr (one <= 4) {
      return use_cluster(shape);
    } else {
      return bytes == 16 && use_cluster(ColumnShape<16, 512, 512, 4, 3, false, 1>{});
    }
  };
  if constexpr (is_short) {
    return use_one(ColumnShape<one, 512, 512, 8, 0, true, 2>{});
  } else {
    if constexpr (one == 4) {
      if (adding) return use_block(ColumnShape<one, 1024, 1024, 4, 0, true, 2, true>{});
    }
    return use_one(ColumnShape < one, 1024, 1024, 4, 0, true, one == 4 ? 2 : 1 > {});
  }
}

template <typename T, typename Function>
ColumnPlan plan_columns(const RowProblem& problem, Stream stream) {
  ColumnPlan plan;
  const int64_t rows = problem.rows.numel;
  if (rows == 0) return plan;
  const auto count_blocks = [&](auto shape, auto clustered, int cluster, int threads) {
    using Chosen = decltype(shape);
    constexpr auto kernel = columns_kernel<Function, T, Chosen, decltype(clustered)::value>;
    const Grid grid{max_cluster, threads, shared_bytes<Function, T, Chosen>(threads)};
    plan.blocks = std::min(
        divide_up(rows, Chosen::rows),
        fitting_blocks<kernel, Chosen, decltype(clustered)::value>(grid, cluster, stream.device));
    return plan.blocks > 0;
  };
  const int64_t row_bytes = problem.size * sizeof(T);
  const int bytes = access_bytes<T, Function>(problem);
  const bool adding = problem.added;
  plan.has_clusters = with_shape<T>(row_bytes, bytes, adding, true, count_blocks);
  if (!plan.has_clusters) with_shape<T>(row_bytes, bytes, adding, false, count_blocks);
  plan.column_blocks = static_cast<int>(divide_up(problem.size, threads_per_block));
  plan.parts = static_cast<int>(std::min<int64_t>(rows, divide_up(2048, plan.column_blocks)));
  return plan;
}

template <typename W>
cudaError_t sum_partials(const RowProblem& problem, int64_t partials, Stream stream) {
  return launch<sum_partials_kernel<Compute<W>, W>>(
      {divide_up(problem.size, 32), 1024}, stream, static_cast<const Compute<W>*>(problem.partial),
      static_cast<W*>(problem.column_out), static_cast<int>(partials), problem.size);
}

template <typename T, typename Function>
cudaError_t run_columns(const Function& function, const RowProblem& problem, Stream stream) {
  const auto plan = plan_columns<T, Function>(problem, stream);
  cudaError_t error = cudaSuccess;
  if (plan.blocks > 0) {
    const RowArguments<Function, T> arguments(function, problem);
    with_shape<T>(
        problem.size * sizeof(T), access_bytes<T, Function>(problem), problem.added,
        plan.has_clusters, [&](auto shape, auto clustered, int cluster, int threads) {
          using Chosen = decltype(shape);
          constexpr auto kernel = columns_kernel<Function, T, Chosen, decltype(clustered)::value>;
          const Grid grid{plan.blocks, threads, shared_bytes<Function, T, Chosen>(threads)};
          if constexpr (decltype(clustered)::value) {
            error = launch_clusters<kernel>(grid, cluster, stream, arguments);
          } else {
            error = launch<kernel>(grid, stream, arguments);
          }
          return true;
        });
  } else if (problem.rows.numel > 0) {
    const RowArguments<Function, T> arguments(function, problem);
    if (problem.out[0]) error = run_long_rows<sizeof(T)>(arguments, stream);
    if (error == cudaSuccess && problem.column_out) {
      error = launch<long_columns_kernel<Function, T>>({int64_t{plan.column_blocks} * plan.parts},
                                                       stream, arguments, plan.column_blocks,
                                                       plan.parts);
    }
  }
  if (error != cudaSuccess || !problem.column_out) return error;
  if constexpr (!std::is_same_v<T, Compute<T>>) {
    if (problem.wide_weight) return sum_partials<Compute<T>>(problem, plan.partials(), stream);
  }
  return sum_partials<T>(problem, plan.partials(), stream);
}

}  // namespace opwright
