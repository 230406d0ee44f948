// The kernel for rows that are too long for registers.
//
// A row stays in shared memory while it is summed and then written. Small blocks with a part of a
// row each leave room for several on a multiprocessor: some load while others wait for their sum or
// write. On GPUs from 9.0 on, the blocks of a cluster share a row. What finds no room in shared
// memory is read twice.
#pragma once

#include "cluster.cuh"
#include "row_kernels.cuh"

namespace opwright {

constexpr int long_row_threads = 256;

// A thread takes `together` accesses at once. The sum over a row is computed in float64.
template <typename Function, typename T, int bytes, int together>
__global__ void __launch_bounds__(long_row_threads, bytes == 2 ? 4 : 6)
    long_rows_kernel(RowArguments<Function, T> problem, uint32_t capacity) {
  using C = Compute<T>;
  using Access = Bits<bytes>;
  constexpr int count = bytes / sizeof(T);  // elements of an access
  constexpr int inputs = Function::inputs, outputs = Function::outputs;
  constexpr uint32_t threads = long_row_threads;
  extern __shared__ uint4 buffer[];
  __shared__ double partial[32], cluster_sums[max_cluster];
  const Cluster cluster;
  const int64_t row = blockIdx.x / cluster.size;
  const uint32_t accesses = problem.size / count;
  const uint32_t most = (accesses + cluster.size - 1) / cluster.size;
  const uint32_t begin = min(cluster.rank * most, accesses);
  const uint32_t size = min(most, accesses - begin);                  // of this block's part
  const int64_t place = row * problem.size + int64_t{begin} * count;  // of the results
  const auto* added = reinterpret_cast<const Access*>(problem.added + place);
  const bool adds_to_input = Function::added == Added::to_input && problem.added;
  const bool adds_to_output = Function::added == Added::to_output && problem.added;
  auto* sum_out = reinterpret_cast<Access*>(problem.sum + place);
  const Access* source[inputs];
  int64_t offsets[inputs];
  row_offsets(problem.walk, row, offsets);
#pragma unroll
  for (int i = 0; i < inputs; ++i)
    source[i] = reinterpret_cast<const Access*>(problem.in[i] + offsets[i]) + begin;
  const auto kept = [&](uint32_t k, int i) -> Access& {
    return reinterpret_cast<Access*>(buffer)[(k * inputs + i) * threads + threadIdx.x];
  };
  const bool wide = !std::is_same_v<T, C> && problem.wide_weight;
  const bool has_own_weights = problem.weight && !wide;
  const auto* own_weights = static_cast<const Access*>(problem.weight) + begin;

  if constexpr (bytes >= 4) {
    uint32_t c = threadIdx.x;
    for (uint32_t k = 0; k < capacity && c < size; ++k, c += threads) {
#pragma unroll
      for (int i = 0; i < inputs; ++i) copy_async(&kept(k, i), source[i] + c, true);
    }
    commit_copies();
  }
  if (cluster.size > 1) cluster.meet();  // every block's shared memory must exist
  // What is added, or the weights, of a few accesses: loaded ahead of their use.
  Access early[together];
  const auto fetch = [&](bool wanted, const Access* from, uint32_t k) OPWRIGHT_ALWAYS {
#pragma unroll
    for (int t = 0; t < together; ++t) {
      const uint32_t c = (k + t) * threads + threadIdx.x;
      if (wanted && c < size) early[t] = from[c];
    }
  };
  // Reads an access of each input. After a residual was added, the sum takes the first input's
  // place.
  const auto read = [&](uint32_t k, uint32_t c, bool is_added, Access(&bits)[inputs])
                        OPWRIGHT_ALWAYS {
#pragma unroll
                          for (int i = 0; i < inputs; ++i)
                            bits[i] = c >= size                             ? Access{}
                                      : k < capacity                        ? kept(k, i)
                                      : i == 0 && is_added && adds_to_input ? sum_out[c]
                                                                            : source[i][c];
                        };
  // Calls `use(t, k, c, bits)` for `together` accesses. Those that are not in shared memory are
  // read before the first use.
  const auto for_accesses = [&](uint32_t first, bool is_added, auto&& use) OPWRIGHT_ALWAYS {
    constexpr bool is_kept = bytes >= 4;
    Access own[together][inputs];
#pragma unroll
    for (int t = 0; !is_kept && t < together; ++t)
      read(first + t, (first + t) * threads + threadIdx.x, is_added, own[t]);
#pragma unroll
    for (int t = 0; t < together; ++t) {
      const uint32_t k = first + t, c = k * threads + threadIdx.x;
      if (is_kept) read(k, c, is_added, own[t]);
      if (c < size) use(t, k, c, own[t]);
    }
  };
  const auto load_all_weights = [&](uint32_t c, C(&weights)[count]) OPWRIGHT_ALWAYS {
#pragma unroll
    for (int e = 0; e < count; ++e) weights[e] = 1;
    if (problem.weight) load_weights<T, bytes>(problem, wide, begin + c, weights);
  };

  double total = 0;
  for (uint32_t k = 0; k * threads + threadIdx.x < size; k += together) {
    fetch(adds_to_input, added, k);
    if (k == 0) wait_for_copies<0>();
    for_accesses(k, false,
                 [&](int t, uint32_t at, uint32_t c, Access(&bits)[inputs]) OPWRIGHT_ALWAYS {
                   if (adds_to_input) {
                     bits[0] = add_elements<T>(bits[0], early[t]);
                     if (at < capacity) kept(at, 0) = bits[0];
                     sum_out[c] = bits[0];
                   }
                   C weights[count];
                   load_all_weights(c, weights);
                   total += sum_terms<T>(problem.function, bits, weights);
                 });
  }
  fetch(has_own_weights, own_weights, 0);
  total = sum_over_block(total, partial);
  if (cluster.size > 1) {
    cluster.send(total, cluster_sums);
    total = cluster.sum(cluster_sums);
  }
  const auto state =
      problem.function.finish(static_cast<C>(total), problem.given ? problem.given[row] : C(0));
  if constexpr (std::is_same_v<typename Function::State, C>) {
    if (threadIdx.x == 0 && cluster.rank == 0 && problem.row_out) problem.row_out[row] = state;
  }
  for (uint32_t k = 0; k * threads + threadIdx.x < size; k += together) {
    if (k > 0) fetch(has_own_weights, own_weights, k);
    for_accesses(k, true, [&](int t, uint32_t, uint32_t c, Access(&bits)[inputs]) OPWRIGHT_ALWAYS {
      C weights[count];
      if (has_own_weights) {
        unpack<T>(early[t], weights);
#pragma unroll
        for (int e = 0; e < count; ++e) weights[e] += std::is_same_v<T, C> ? problem.offset : C(0);
      } else {
        load_all_weights(c, weights);
      }
      Access results[outputs];
      apply<T>(problem.function, bits, weights, state, results);
      if (adds_to_output) results[0] = add_elements<T>(results[0], added[c]);
#pragma unroll
      for (int o = 0; o < outputs; ++o)
        reinterpret_cast<Access*>(problem.out[o] + place)[c] = results[o];
    });
  }
}

// The largest cluster in which the device runs `kernel`: 1 if it has none, or runs code that was
// compiled for an older GPU. The answer is kept for each of the first 64 devices.
template <auto kernel>
int largest_cluster(Grid grid, int device) {
  constexpr int known_devices = 64;
  static std::atomic<int> known[known_devices] = {};
  int largest = device < known_devices ? known[device].load(std::memory_order_relaxed) : 0;
  if (largest > 0) return largest;
  const auto* function = reinterpret_cast<const void*>(kernel);
  cudaFuncAttributes attributes;
  largest = 1;
  if (cudaFuncGetAttributes(&attributes, function) == cudaSuccess && attributes.ptxVersion >= 90 &&
      cudaFuncSetAttribute(function, cudaFuncAttributeNonPortableClusterSizeAllowed, 1) ==
          cudaSuccess) {
    for (int size = max_cluster, clusters = 0; largest == 1 && size > 1; size /= 2) {
      cudaLaunchAttribute attribute;
      const auto config = cluster_config(attribute, grid, size, nullptr);
      if (cudaOccupancyMaxActiveClusters(&clusters, function, &config) == cudaSuccess &&
          clusters > 0)
        largest = size;
    }
  }
  cudaGetLastError();
  if (device < known_devices) known[device].store(largest, std::memory_order_relaxed);
  return largest;
}

template <int bytes, typename Function, typename T>
cudaError_t run_long_rows(const RowArguments<Function, T>& problem, Stream stream) {
  // Backward, these kernels are for rows that are too long for clusters, and small instead of fast.
  constexpr int together = Function::added == Added::to_output ? 1 : 4;
  constexpr auto kernel = long_rows_kernel<Function, T, bytes, together>;
  const int64_t accesses = problem.size * sizeof(T) / bytes;
  // A block takes up to 72 kB alone. Of longer rows, it takes up to 40 kB in a cluster: a power of
  // two, as its parts are equal for most rows.
  constexpr int most_alone = 72 * 1024, most_in_cluster = 40 * 1024;
  constexpr int each = bytes * Function::inputs * long_row_threads;
  Grid grid{problem.rows, long_row_threads};
  uint32_t capacity = 0;
  int cluster = 1;
  if constexpr (bytes >= 4) {
    const int room = allow_shared<kernel>(INT_MAX, stream.device);
    const int64_t needed = accesses * bytes * Function::inputs;
    if (needed > most_alone) {
      grid.shared_bytes = std::min(room, most_in_cluster);
      const int largest = largest_cluster<kernel>(grid, stream.device);
      while (cluster < largest && cluster * int64_t{most_in_cluster} < needed) cluster *= 2;
    }
    capacity = static_cast<uint32_t>(
        std::min<int64_t>(divide_up(divide_up(accesses, cluster), long_row_threads), room / each));
    grid.shared_bytes = static_cast<int>(capacity) * each;
  }
  return cluster == 1 ? launch<kernel>(grid, stream, problem, capacity)
                      : launch_clusters<kernel>(grid, cluster, stream, problem, capacity);
}

}  // namespace opwright
