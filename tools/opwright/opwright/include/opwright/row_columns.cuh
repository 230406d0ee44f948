// The CUDA engine for row ops that also sum over the rows, for each column: rows.h says what an op
// is.
//
// As many blocks as fit walk over the rows, with their columns' sums in registers, while the next
// rows are on their way into shared memory: the inputs are read once. Each block leaves one partial
// sum per column; sum_partials_kernel adds them up, always in the same order. Where rows are
// aligned, a thread reads there only what it has copied itself, so that no barrier is needed.
//
// Rows that are too long for a block are shared by the blocks of a cluster, which exchange their
// sums, on GPUs from 9.0 on. Elsewhere, and for rows that are longer still, the rows are read
// twice: by any_rows_kernel, and by long_columns_kernel.
#pragma once

#include "row_kernels.cuh"

namespace opwright {

// How the rows of one length are divided: `vectors` for each of a row's `row_threads` threads, and
// `stages` rows on their way at once. `in_registers`: a row's vectors leave shared memory before
// the sum over the row, which makes room for the next copies early.
template <int threads_, int row_threads_, int vectors_, int stages_, bool in_registers_,
          int blocks_, bool anywhere_ = false>
struct Shape {
  static constexpr int threads = threads_, row_threads = row_threads_, vectors = vectors_,
                       stages = stages_;
  static constexpr bool in_registers = in_registers_;
  static constexpr int blocks = blocks_;       // at most, on one multiprocessor
  static constexpr bool anywhere = anywhere_;  // rows may start off their alignment
  static constexpr int rows = threads / row_threads;
  static constexpr int pitch = vectors * row_threads + anywhere;  // pieces of one row
};

// Blocks of a cluster share a row: each has a part of its columns. GPUs from 9.0 on.
constexpr int max_cluster = 8;
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
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::
                     : "memory");
#endif
  }
  // The sum over the blocks. Calls that follow each other need two of `sums` in turn.
  template <typename Number>
  __device__ __forceinline__ Number sum(Number value, Number* sums) const {
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

// Waits until the threads of a row have come here.
template <int row_threads>
__device__ __forceinline__ void wait_for_row() {
  if constexpr (row_threads <= 32) {
    __syncwarp();
  } else {
    __syncthreads();
  }
}

template <typename Function, typename T, typename W, typename Shape, bool clustered>
__global__ void __launch_bounds__(Shape::threads)
    columns_kernel(RowArguments<Function, T, W> problem) {
  using C = Compute<T>;
  constexpr int inputs = Function::inputs, outputs = Function::outputs;
  constexpr int vector_size = Vector<T>::size, threads = Shape::threads;
  constexpr int row_threads = Shape::row_threads, vectors = Shape::vectors;
  constexpr int lanes = row_threads < 32 ? row_threads : 32;
  constexpr bool anywhere = Shape::anywhere;
  extern __shared__ uint4 buffer[];
  __shared__ C sums[2][32], cluster_sums[2][max_cluster];
  const Cluster cluster;
  const int lane = threadIdx.x % row_threads, group = threadIdx.x / row_threads;
  // The block's columns.
  const int64_t most =
      clustered ? divide_up(divide_up(problem.size, vector_size), cluster.size) * vector_size
                : problem.size;
  const int64_t begin = clustered ? cluster.rank * most : 0;
  const int64_t size = min(most, max(problem.size - begin, int64_t{0}));
  const int row_vectors = static_cast<int>((size + vector_size - 1) / vector_size);
  const int64_t blocks = clustered ? gridDim.x / cluster.size : gridDim.x;
  const int64_t block = clustered ? blockIdx.x / cluster.size : blockIdx.x;
  const int64_t step = blocks * Shape::rows;
  if constexpr (clustered) cluster.wait();  // until all of them have shared memory

  const auto piece = [&](int stage, int i, int c) -> uint4& {
    return buffer[((stage * inputs + i) * Shape::rows + group) * Shape::pitch + c];
  };
  const T* next[inputs];  // the row that is fetched
  bool has_next;
  const auto find_next = [&](int64_t row) {
    has_next = row < problem.rows;
    if (!has_next) return;
    int64_t offsets[inputs];
    row_offsets(problem.walk, row, offsets);
#pragma unroll
    for (int i = 0; i < inputs; ++i) next[i] = problem.in[i] + offsets[i] + begin;
  };
  const auto fetch_vector = [&](int stage, int i, int j) {  // of an aligned row
    const int c = j * row_threads + lane;
    if (has_next && c < row_vectors)
      copy_async(&piece(stage, i, c), reinterpret_cast<const uint4*>(next[i]) + c);
  };
  const auto fetch_pieces = [&](auto inside, const RowPieces& pieces, int stage, int i) {
#pragma unroll
    for (int j = 0; j <= vectors; ++j) {
      const int c = j * row_threads + lane;
      if (c <= row_vectors) pieces.copy<decltype(inside)::value>(&piece(stage, i, c), c);
    }
  };
  const auto fetch = [&](int stage) {
#pragma unroll
    for (int i = 0; i < inputs; ++i) {
      if constexpr (anywhere) {
        if (!has_next) continue;
        const RowPieces pieces(next[i], size);
        if (pieces.lie_before(problem.limit[i], row_vectors + 1)) {
          fetch_pieces(std::true_type{}, pieces, stage, i);
        } else {
          fetch_pieces(std::false_type{}, pieces, stage, i);
        }
      } else {
#pragma unroll
        for (int j = 0; j < vectors; ++j) fetch_vector(stage, i, j);
      }
    }
    commit_copies();
  };

  int64_t first = block * Shape::rows;
#pragma unroll 1
  for (int s = 0; s < Shape::stages; ++s) {
    find_next(first + s * step + group);
    fetch(s);
  }
  Weights<T, W> weights[vectors];
  alignas(16) C columns[vectors][vector_size];
#pragma unroll
  for (int j = 0; j < vectors; ++j) {
    const int c = j * row_threads + lane;
    if (problem.weight && c < row_vectors)
      weights[j] = Weights<T, W>(problem.weight + begin, int64_t{c} * vector_size, size);
#pragma unroll
    for (int e = 0; e < vector_size; ++e) columns[j][e] = 0;
  }

  const auto given = [&](int64_t row) { return row < problem.rows ? problem.given[row] : C(0); };
  C next_given = given(first + group);
  for (int stage = 0, turn = 0; first < problem.rows; first += step, turn ^= 1) {
    const int64_t row = first + group;
    const int own_vectors = row < problem.rows ? row_vectors : 0;
    const C row_given = next_given;
    next_given = given(row + step);
    unsigned offsets[inputs] = {};
    if (anywhere && own_vectors > 0) {
      int64_t elements[inputs];
      row_offsets(problem.walk, row, elements);
#pragma unroll
      for (int i = 0; i < inputs; ++i)
        offsets[i] = reinterpret_cast<uintptr_t>(problem.in[i] + elements[i]) % 16;
    }
    find_next(row + Shape::stages * step);
    wait_for_copies<Shape::stages - 1>();
    if constexpr (anywhere) wait_for_row<row_threads>();
    const auto read = [&](int j, uint4(&bytes)[inputs]) {
      const int c = j * row_threads + lane;
#pragma unroll
      for (int i = 0; i < inputs; ++i) {
        bytes[i] = c < own_vectors ? piece(stage, i, c) : uint4{0, 0, 0, 0};
        if (anywhere && offsets[i] && c < own_vectors)
          bytes[i] = cut_vector<T>({bytes[i], piece(stage, i, c + 1), offsets[i]});
      }
    };

    uint4 own[Shape::in_registers ? vectors : 1][inputs];
    C sum = 0;
#pragma unroll
    for (int j = 0; j < vectors; ++j) {
      uint4 bytes[inputs];
      read(j, bytes);
      if constexpr (Shape::in_registers) {
#pragma unroll
        for (int i = 0; i < inputs; ++i) own[j][i] = bytes[i];
      }
      sum += sum_terms<T, W>(problem.function, bytes, weights[j]);
    }
    if constexpr (Shape::in_registers && !anywhere) fetch(stage);
    sum = sum_over_row<row_threads>(sum, sums[turn]);
    if constexpr (clustered) sum = cluster.sum(sum, cluster_sums[turn]);
    if constexpr (Shape::in_registers && anywhere) {
      if constexpr (row_threads <= 32) __syncwarp();
      fetch(stage);  // every thread of the row has read its vectors
    }
    const auto state = problem.function.finish(sum, row_given);

#pragma unroll
    for (int j = 0; j < vectors; ++j) {
      const int c = j * row_threads + lane;
      if (!anywhere && c >= own_vectors) continue;
      uint4 bytes[inputs], results[outputs];
      if constexpr (Shape::in_registers) {
#pragma unroll
        for (int i = 0; i < inputs; ++i) bytes[i] = own[j][i];
      } else {
        read(j, bytes);
        if constexpr (!anywhere) fetch_vector(stage, 0, j);
      }
      for_each_element<T>(bytes, [&](int e, const C* in) {
        columns[j][e] += problem.function.column(in, row_given);
      });
      apply<T, W>(problem.function, bytes, weights[j], state, results);
#pragma unroll
      for (int o = 0; o < outputs; ++o) {
        if (!problem.out[o]) continue;
        T* out = problem.out[o] + row * problem.size + begin;
        if constexpr (anywhere) {
          store_anywhere<T, lanes>(out, int64_t{c} * vector_size, own_vectors > 0 ? size : 0,
                                   results[o]);
        } else {
          reinterpret_cast<uint4*>(out)[c] = results[o];
        }
      }
    }
    if constexpr (!Shape::in_registers && anywhere) {
      wait_for_row<row_threads>();
      fetch(stage);
    } else if constexpr (!Shape::in_registers) {
#pragma unroll
      for (int i = 1; i < inputs; ++i) {
#pragma unroll
        for (int j = 0; j < vectors; ++j) fetch_vector(stage, i, j);
      }
      commit_copies();
    }
    stage = stage + 1 == Shape::stages ? 0 : stage + 1;
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
      for (int e = 0; e < vector_size; ++e)
        shared[(j * vector_size + e) * threads + threadIdx.x] = columns[j][e];
    }
    __syncthreads();
    for (int i = threadIdx.x; i < vectors * vector_size * row_threads; i += threads) {
      const int place = i / row_threads, other_lane = i % row_threads;
      const int c = place / vector_size * row_threads + other_lane;
      const int column = c * vector_size + place % vector_size;
      if (column >= size) continue;
      C sum = 0;
      for (int g = 0; g < Shape::rows; ++g)
        sum += shared[place * threads + g * row_threads + other_lane];
      partial[column] = sum;
    }
  } else {
#pragma unroll
    for (int j = 0; j < vectors; ++j) {
      const int column = (j * row_threads + lane) * vector_size;
      if constexpr (anywhere) {
#pragma unroll
        for (int e = 0; e < vector_size; ++e)
          if (column + e < size) partial[column + e] = columns[j][e];
      } else if (column < size) {
        constexpr int each = 16 / sizeof(C);
#pragma unroll
        for (int e = 0; e < vector_size; e += each)
          reinterpret_cast<uint4*>(partial + column)[e / each] =
              *reinterpret_cast<const uint4*>(&columns[j][e]);
      }
    }
  }
}

// One vector of columns per thread, and one part of the rows per block.
template <typename Function, typename T, typename W>
__global__ void __launch_bounds__(threads_per_block)
    long_columns_kernel(RowArguments<Function, T, W> problem, int column_blocks, int parts) {
  using C = Compute<T>;
  constexpr int inputs = Function::inputs, vector_size = Vector<T>::size;
  const int c = static_cast<int>(blockIdx.x % column_blocks) * threads_per_block + threadIdx.x;
  const int part = static_cast<int>(blockIdx.x) / column_blocks;
  const int64_t column = int64_t{c} * vector_size;
  if (column >= problem.size) return;
  C columns[vector_size] = {};
#pragma unroll 2
  for (int64_t row = part; row < problem.rows; row += parts) {
    int64_t offsets[inputs];
    row_offsets(problem.walk, row, offsets);
    uint4 bytes[inputs];
#pragma unroll
    for (int i = 0; i < inputs; ++i)
      bytes[i] = LoadedVector<T>(problem.in[i] + offsets[i], column, problem.size).cut();
    const C given = problem.given[row];
    for_each_element<T>(
        bytes, [&](int e, const C* in) { columns[e] += problem.function.column(in, given); });
  }
#pragma unroll
  for (int e = 0; e < vector_size; ++e) {
    if (column + e < problem.size) problem.partial[part * problem.size + column + e] = columns[e];
  }
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
  const int staged = Shape::stages * Function::inputs * Shape::rows * Shape::pitch * 16;
  const int summed =
      Shape::vectors * Vector<T>::size * Shape::threads * static_cast<int>(sizeof(Compute<T>));
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
  if (error == cudaSuccess && shared_limit<kernel>(device) < grid.shared_bytes)
    error = cudaErrorInvalidConfiguration;
  if (error == cudaSuccess && cluster > 1) {
    cudaLaunchAttribute attribute;
    const auto config = cluster_config(attribute, grid, cluster, nullptr);
    error = major < 9 ? cudaErrorNotSupported
                      : cudaOccupancyMaxActiveClusters(&blocks, function, &config);
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

// Calls `use(kernel's Shape, clustered, cluster)` with what is for rows of that many vectors, until
// it returns true. Shapes are chosen from a sweep on an H200; neighbouring lengths share one, to
// keep the library small.
template <typename T, typename W, typename Use>
bool with_shape(int64_t vectors, bool aligned, Use&& use) {
  constexpr std::false_type alone{};
  using Long = Shape<512, 512, 4, 2, false, 1, true>;
  if (aligned) {
    if (vectors <= 16) return use(Shape<256, 16, 1, 2, true, 4>{}, alone, 1);
    if constexpr (std::is_same_v<T, W> && !std::is_same_v<T, double>) {
      if (vectors <= 64) return use(Shape<128, 32, 2, 2, true, 16>{}, alone, 1);
      if (vectors > 256 && vectors <= 512) return use(Shape<256, 256, 2, 2, true, 2>{}, alone, 1);
    }
    if (vectors <= 256) return use(Shape<128, 128, 2, 2, true, 8>{}, alone, 1);
    if (vectors <= 1024) return use(Shape<512, 512, 2, 2, true, 1>{}, alone, 1);
    if (vectors <= 2048) return use(Shape<512, 512, 4, 1, false, 1>{}, alone, 1);
    if constexpr (std::is_same_v<T, float>) {
      if (vectors <= 4096) return use(Shape<512, 512, 8, 1, false, 1>{}, alone, 1);
    }
  } else {
    if (vectors <= 16) return use(Shape<256, 16, 1, 2, true, 4, true>{}, alone, 1);
    if (vectors <= 64) return use(Shape<128, 32, 2, 2, true, 16, true>{}, alone, 1);
    if (vectors <= 256) return use(Shape<128, 128, 2, 2, true, 8, true>{}, alone, 1);
    if (vectors <= 512) return use(Shape<256, 256, 2, 2, true, 3, true>{}, alone, 1);
    if (vectors <= 640) return use(Shape<128, 128, 5, 2, true, 3, true>{}, alone, 1);
    if (vectors <= 1024) return use(Shape<512, 512, 2, 2, true, 1, true>{}, alone, 1);
    if (vectors <= 2048) return use(Long{}, alone, 1);
  }
  for (int cluster = 2; cluster <= max_cluster; cluster *= 2) {
    if (vectors > int64_t{cluster} * Long::vectors * Long::threads) continue;
    return aligned ? use(Shape<512, 512, 4, 2, false, 1>{}, std::true_type{}, cluster)
                   : use(Long{}, std::true_type{}, cluster);
  }
  return false;
}

template <typename T, typename W, typename Function>
ColumnPlan plan_columns(const RowProblem& problem, Stream stream) {
  ColumnPlan plan;
  const int64_t rows = problem.rows.numel, vectors = divide_up(problem.size, Vector<T>::size);
  if (rows == 0) return plan;
  with_shape<T, W>(
      vectors, has_aligned_rows<T, Function>(problem),
      [&](auto shape, auto clustered, int cluster) {
        using Chosen = decltype(shape);
        constexpr auto kernel = columns_kernel<Function, T, W, Chosen, decltype(clustered)::value>;
        constexpr int bytes = shared_bytes<Function, T, Chosen>();
        plan.cluster = cluster;
        plan.blocks = std::min(divide_up(rows, Chosen::rows),
                               fitting_blocks<kernel>({max_cluster, Chosen::threads, bytes},
                                                      cluster, Chosen::blocks, stream.device));
        return plan.blocks > 0;
      });
  plan.column_blocks = static_cast<int>(divide_up(vectors, threads_per_block));
  plan.parts = static_cast<int>(std::min<int64_t>(rows, divide_up(1024, plan.column_blocks)));
  return plan;
}

template <typename T, typename W, typename Function>
cudaError_t run_columns(const Function& function, const RowProblem& problem, Stream stream) {
  using C = Compute<T>;
  const auto plan = plan_columns<T, W, Function>(problem, stream);
  cudaError_t error = cudaSuccess;
  if (plan.blocks > 0) {
    RowArguments<Function, T, W> arguments(function, problem);
    with_shape<T, W>(
        divide_up(problem.size, Vector<T>::size), has_aligned_rows<T, Function>(problem),
        [&](auto shape, auto clustered, int cluster) {
          using Chosen = decltype(shape);
          constexpr auto kernel =
              columns_kernel<Function, T, W, Chosen, decltype(clustered)::value>;
          if (cluster != plan.cluster) return false;
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
    const RowArguments<Function, T, W> arguments(function, problem);
    if (problem.out[0]) error = run_any_rows<512, 512, 4>(arguments, stream);
    if (error == cudaSuccess && problem.column_out) {
      error = launch<long_columns_kernel<Function, T, W>>(
          {int64_t{plan.column_blocks} * plan.parts}, stream, arguments, plan.column_blocks,
          plan.parts);
    }
  }
  if (error != cudaSuccess || !problem.column_out) return error;
  return launch<sum_partials_kernel<C, W>>(
      {divide_up(problem.size, 32), 1024}, stream, static_cast<const C*>(problem.partial),
      static_cast<W*>(problem.column_out), static_cast<int>(plan.partials()), problem.size);
}

}  // namespace opwright
