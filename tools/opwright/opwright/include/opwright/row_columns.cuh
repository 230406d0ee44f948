// Kernels for row ops that also sum over the rows, for each column.
//
// As many blocks as fit walk over the rows, with their columns' sums in registers, while the next
// rows are on their way into shared memory: the inputs are read once. Each block leaves one partial
// sum per column; sum_partials_kernel adds them up, always in the same order. A thread reads in
// shared memory only what it has copied itself, so that no barrier is needed for that.
//
// Rows that are too long for a block are shared by the blocks of a cluster, which exchange their
// sums, on GPUs from 9.0 on. Elsewhere, and for rows that are longer still, the rows are read
// twice: by rows_kernel, and by long_columns_kernel.
#pragma once

#include "row_kernels.cuh"

namespace opwright {

// How the rows of one length are divided: `vectors` accesses of so many bytes for each of a row's
// `row_threads` threads, and `stages` rows on their way into shared memory at once; with no stage,
// a row goes straight into registers, and other blocks on the multiprocessor have to fill the time.
// `in_registers`: a row leaves shared memory before the sum over the row, which makes room for the
// next copies early.
template <int bytes_, int threads_, int row_threads_, int vectors_, int stages_, bool in_registers_,
          int blocks_>
struct ColumnShape {
  static constexpr int bytes = bytes_, threads = threads_, row_threads = row_threads_,
                       vectors = vectors_, stages = stages_;
  static constexpr bool in_registers = in_registers_ || stages == 0;
  static constexpr int blocks = blocks_;                    // at most, on one multiprocessor
  static constexpr int fitting = stages == 0 ? blocks : 0;  // at least: bounds the registers
  static constexpr int rows = threads / row_threads;
  static constexpr bool adds = bytes == 16 && vectors <= 2;  // see RowShape::adds
};

// Blocks of a cluster share a row: each has a part of its columns. GPUs from 9.0 on.
constexpr int max_cluster = 16;  // above 8 where the device has them
struct Cluster {
  unsigned rank = 0, size = 1;

  __device__ __forceinline__ Cluster() {
#if __CUDA_ARCH__ >= 900
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
#endif
  }
  __device__ __forceinline__ void wait() const {
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
#endif
  }
  // The sum over the blocks. Calls that follow each other need two of `sums` in turn.
  template <typename Number>
  __device__ __forceinline__ Number sum(Number value, [[maybe_unused]] Number* sums) const {
#if __CUDA_ARCH__ >= 900
    if (threadIdx.x < size) {
      const auto own = static_cast<unsigned>(__cvta_generic_to_shared(sums + rank));
      unsigned other;
      asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(other) : "r"(own), "r"(threadIdx.x));
      if constexpr (sizeof(Number) == 4) {
        asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(other), "f"(value) : "memory");
      } else {
        asm volatile("st.shared::cluster.f64 [%0], %1;" ::"r"(other), "d"(value) : "memory");
      }
    }
    wait();
    value = 0;
    for (unsigned r = 0; r < size; ++r) value += sums[r];
#endif
    return value;
  }
};

template <typename Function, typename T, typename Shape, bool clustered>
__global__ void __launch_bounds__(Shape::threads, Shape::fitting)
    columns_kernel(RowArguments<Function, T> problem) {
#if __CUDA_ARCH__ < 900
  if constexpr (clustered) return;  // never launched there
#endif
  using C = Compute<T>;
  using Access = Bits<Shape::bytes>;
  constexpr int inputs = Function::inputs, outputs = Function::outputs, threads = Shape::threads;
  constexpr int row_threads = Shape::row_threads, vectors = Shape::vectors, stages = Shape::stages;
  constexpr int count = Shape::bytes / sizeof(T);  // elements of an access
  extern __shared__ uint4 buffer[];
  __shared__ C sums[2][32], cluster_sums[2][max_cluster];
  const Cluster cluster;
  const int lane = threadIdx.x % row_threads, group = threadIdx.x / row_threads;
  // The block's columns.
  const int64_t most =
      clustered ? divide_up(problem.size / count, cluster.size) * count : problem.size;
  const int64_t begin = clustered ? cluster.rank * most : 0;
  const int64_t size = min(most, max(problem.size - begin, int64_t{0}));
  const int row_vectors = static_cast<int>(size / count);
  const int64_t blocks = clustered ? gridDim.x / cluster.size : gridDim.x;
  const int64_t block = clustered ? blockIdx.x / cluster.size : blockIdx.x;
  const int64_t step = blocks * Shape::rows;
  if constexpr (clustered) cluster.wait();  // until all of them have shared memory

  Access own[Shape::in_registers ? vectors : 1][inputs];
  const auto at = [&](int stage, int i, int j) -> Access& {
    return reinterpret_cast<Access*>(
        buffer)[((stage * inputs + i) * vectors + j) * threads + threadIdx.x];
  };
  const Access* next[inputs];  // the thread's part of the row that is fetched
  bool has_next;
  const auto find_next = [&](int64_t row) OPWRIGHT_ALWAYS {
    has_next = row < problem.rows;
    int64_t offsets[inputs];
    row_offsets(problem.walk, has_next ? row : 0, offsets);
#pragma unroll
    for (int i = 0; i < inputs; ++i)
      next[i] = reinterpret_cast<const Access*>(problem.in[i] + offsets[i] + begin) + lane;
  };
  const auto fetch_vector = [&](int stage, int i, int j) OPWRIGHT_ALWAYS {
    const bool is_own = has_next & (j * row_threads + lane < row_vectors);
    if constexpr (stages == 0) {
      own[j][i] = is_own ? __ldg(next[i] + j * row_threads) : Access{};
    } else {
      const Access* from =
          is_own ? next[i] + j * row_threads : reinterpret_cast<const Access*>(problem.in[i]);
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

  C next_given = first + group < problem.rows ? problem.given[first + group] : C(0);
  for (int stage = 0, turn = 0; first < problem.rows; first += step, turn ^= 1) {
    const int64_t row = first + group;
    const int own_vectors = row < problem.rows ? row_vectors : 0;
    const C row_given = next_given;
    if (row + step < problem.rows) next_given = problem.given[row + step];
    find_next(row + stages * step);
    if constexpr (stages == 0) {
      fetch(0);
    } else {
      wait_for_copies<stages - 1>();
    }
    const auto read = [&](int j, Access(&bits)[inputs]) {
#pragma unroll
      for (int i = 0; i < inputs; ++i) bits[i] = at(stage, i, j);
    };

    C sum = 0;
    if constexpr (Shape::in_registers) {
      if constexpr (stages > 0) {
#pragma unroll
        for (int j = 0; j < vectors; ++j) read(j, own[j]);
        fetch(stage);
      }
#pragma unroll
      for (int j = 0; j < vectors; ++j) sum += sum_terms<T>(problem.function, own[j], weights[j]);
    } else {
#pragma unroll
      for (int j = 0; j < vectors; ++j) {
        Access bits[inputs];
        read(j, bits);
        sum += sum_terms<T>(problem.function, bits, weights[j]);
      }
    }
    sum = sum_over_row<row_threads>(sum, sums[turn]);
    if constexpr (clustered) sum = cluster.sum(sum, cluster_sums[turn]);
    const auto state = problem.function.finish(sum, row_given);

    const int64_t place = row * problem.size + begin;  // of the results
#pragma unroll
    for (int j = 0; j < vectors; ++j) {
      const int c = j * row_threads + lane;
      Access bits[inputs], results[outputs];
      if constexpr (Shape::in_registers) {
#pragma unroll
        for (int i = 0; i < inputs; ++i) bits[i] = own[j][i];
      } else {
        read(j, bits);
        fetch_vector(stage, 0, j);
      }
      if (c >= own_vectors) continue;
      for_each_element<T>(bits, [&](int e, const C* in) {
        columns[j][e] += problem.function.column(in, row_given);
      });
      apply<T>(problem.function, bits, weights[j], state, results);
      if (Function::added == Added::to_output && Shape::adds && problem.added)
        results[0] =
            add_elements<T>(results[0], reinterpret_cast<const Access*>(problem.added + place)[c]);
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
    stage = stage + 1 >= stages ? 0 : stage + 1;
  }
  if (!problem.partial) return;

  // The block's partial sums. Threads that share columns add up through shared memory.
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
  constexpr int together = 4;  // rows whose loads are on their way at once
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
constexpr int shared_bytes() {
  const int staged =
      Shape::stages * Function::inputs * Shape::vectors * Shape::threads * Shape::bytes;
  const int summed = Shape::vectors * (Shape::bytes / static_cast<int>(sizeof(T))) *
                     Shape::threads * static_cast<int>(sizeof(Compute<T>));
  return Shape::rows > 1 ? std::max(staged, summed) : staged;
}

inline cudaLaunchConfig_t cluster_config(cudaLaunchAttribute& attribute, Grid grid, int cluster,
                                         cudaStream_t stream) {
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {static_cast<unsigned>(cluster), 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(grid.blocks * cluster));
  config.blockDim = dim3(static_cast<unsigned>(grid.threads));
  config.dynamicSmemBytes = static_cast<size_t>(grid.shared_bytes);
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  return config;
}

// How many blocks, or clusters, of a kernel fit on the device at once, asked once for each of the
// first 64 devices and each size of the cluster; 0 where the device cannot run it.
template <auto kernel>
int64_t fitting_blocks(Grid grid, int cluster, int most_each, int device) {
  constexpr int known_devices = 64;
  static std::atomic<int> known[known_devices][max_cluster] = {};
  if (device < known_devices) {
    const int blocks = known[device][cluster - 1].load(std::memory_order_relaxed);
    if (blocks > 0) return blocks - 1;  // 0 is for "not asked yet"
  }
  int blocks = 0, multiprocessors = 0, major = 0;
  const auto* function = reinterpret_cast<const void*>(kernel);
  cudaError_t error = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  if (error == cudaSuccess && grid.shared_bytes > 0 &&
      allow_shared<kernel>(grid.shared_bytes, device) < grid.shared_bytes)
    error = cudaErrorInvalidConfiguration;
  if (error == cudaSuccess && cluster > 1) {
    cudaLaunchAttribute attribute;
    const auto config = cluster_config(attribute, grid, cluster, nullptr);
    error = major < 9
                ? cudaErrorNotSupported
                : cudaFuncSetAttribute(function, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    if (error == cudaSuccess) error = cudaOccupancyMaxActiveClusters(&blocks, function, &config);
  } else if (error == cudaSuccess) {
    error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, grid.threads,
                                                          grid.shared_bytes);
    if (error == cudaSuccess)
      error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
    blocks = std::min(blocks, most_each) * multiprocessors;
  }
  if (error != cudaSuccess) {
    cudaGetLastError();
    blocks = 0;
  }
  if (device < known_devices) known[device][cluster - 1].store(blocks + 1);
  return blocks;
}

// How a problem is divided: as columns_kernel of `blocks` blocks or clusters, or by the kernels
// that read twice, in `parts` parts.
struct ColumnPlan {
  int64_t blocks = 0;
  int cluster = 1, column_blocks = 0, parts = 0;

  int64_t partials() const { return blocks > 0 ? blocks : parts; }
};

// Calls `use(shape, clustered, cluster)` with what is for rows of that many bytes and accesses of
// `bytes` or fewer; returns what it returns, or false where there is nothing. Shapes are chosen
// from a sweep on an H200; neighbouring lengths share one, to keep the library small.
template <typename T, typename Use>
bool with_shape(int64_t row_bytes, int bytes, Use&& use) {
  constexpr std::false_type alone{};
  constexpr bool is_short = sizeof(T) == 2;
  const int64_t vectors = row_bytes / 16;
  [[maybe_unused]] const auto use_cluster = [&](auto shape) {
    using Shape = decltype(shape);
    for (int cluster = 2; cluster <= max_cluster; cluster *= 2) {
      if (row_bytes <= int64_t{cluster} * Shape::vectors * Shape::threads * Shape::bytes)
        return use(shape, std::true_type{}, cluster);
    }
    return false;
  };
  if constexpr (sizeof(T) <= 4) {
    if (bytes == 16) {
      if (vectors <= 16) return use(ColumnShape<16, 256, 16, 1, 2, true, 4>{}, alone, 1);
      if (vectors <= 64) return use(ColumnShape<16, 128, 32, 2, 2, true, 16>{}, alone, 1);
      if (vectors <= 256) return use(ColumnShape<16, 128, 128, 2, 2, true, 8>{}, alone, 1);
      if (vectors <= 512) return use(ColumnShape<16, 512, 512, 1, 1, true, 3>{}, alone, 1);
      if (vectors <= 768) return use(ColumnShape<16, 512, 512, 2, 2, true, 1>{}, alone, 1);
      if (vectors <= 1024) return use(ColumnShape<16, 1024, 1024, 1, 1, true, 1>{}, alone, 1);
      if (vectors <= 2048) return use(ColumnShape<16, 512, 512, 4, 1, false, 1>{}, alone, 1);
      if constexpr (!is_short) {
        if (vectors <= 4096) return use(ColumnShape<16, 512, 512, 8, 1, false, 1>{}, alone, 1);
      }
      return use_cluster(ColumnShape<16, 512, 512, 4, 2, false, 1>{});
    }
  }
  if constexpr (is_short) {
    if (bytes == 8 && row_bytes > 512 && row_bytes <= 1280 * 8)
      return use(ColumnShape<8, 256, 256, 5, 2, true, 4>{}, alone, 1);
    using Long = ColumnShape<8, 512, 512, 5, 2, true, 2>;
    if (bytes == 8 && row_bytes > 1280 * 8)
      return row_bytes <= 2560 * 8 ? use(Long{}, alone, 1) : use_cluster(Long{});
  }
  constexpr int one = sizeof(T), blocks = one == 8 ? 1 : 2;
  if (row_bytes <= 256 * one)
    return use(ColumnShape<one, 128, 32, 8, 0, true, 4 * blocks>{}, alone, 1);
  if constexpr (sizeof(T) <= 4) {
    if (row_bytes <= 1024 * one) return use(ColumnShape<one, 128, 128, 8, 0, true, 6>{}, alone, 1);
  }
  using Longest = ColumnShape<one, 1024, 1024, 4, 0, true, blocks>;
  if (row_bytes <= 4096 * one) return use(Longest{}, alone, 1);
  if constexpr (is_short) return use_cluster(Longest{});
  return false;
}

template <typename T, typename Function>
ColumnPlan plan_columns(const RowProblem& problem, Stream stream) {
  ColumnPlan plan;
  const int64_t rows = problem.rows.numel;
  if (rows == 0) return plan;
  with_shape<T>(
      problem.size * sizeof(T), access_bytes<T, Function>(problem),
      [&](auto shape, auto clustered, int cluster) {
        using Chosen = decltype(shape);
        constexpr auto kernel = columns_kernel<Function, T, Chosen, decltype(clustered)::value>;
        constexpr int bytes = shared_bytes<Function, T, Chosen>();
        plan.cluster = cluster;
        plan.blocks = std::min(divide_up(rows, Chosen::rows),
                               fitting_blocks<kernel>({max_cluster, Chosen::threads, bytes},
                                                      cluster, Chosen::blocks, stream.device));
        return plan.blocks > 0;
      });
  plan.column_blocks = static_cast<int>(divide_up(problem.size, threads_per_block));
  plan.parts = static_cast<int>(std::min<int64_t>(rows, divide_up(2048, plan.column_blocks)));
  return plan;
}

// Adds up the partial sums of the columns.
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
    RowArguments<Function, T> arguments(function, problem);
    with_shape<T>(
        problem.size * sizeof(T), access_bytes<T, Function>(problem),
        [&](auto shape, auto clustered, int cluster) {
          using Chosen = decltype(shape);
          constexpr auto kernel = columns_kernel<Function, T, Chosen, decltype(clustered)::value>;
          const Grid grid{plan.blocks, Chosen::threads, shared_bytes<Function, T, Chosen>()};
          if constexpr (decltype(clustered)::value) {
            cudaLaunchAttribute attribute;
            const auto config = cluster_config(attribute, grid, cluster, stream.handle);
            void* pointers[] = {&arguments};
            error = cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(kernel), pointers);
            if (error != cudaSuccess) cudaGetLastError();
          } else {
            error = launch<kernel>(grid, stream, arguments);
          }
          return true;
        });
  } else if (problem.rows.numel > 0) {
    const RowArguments<Function, T> arguments(function, problem);
    using Long = RowShape<sizeof(T), 512, 512, 4, 1, false, true>;
    if (problem.out[0]) error = run_shape<Long, WeightKind::either>(arguments, stream);
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
