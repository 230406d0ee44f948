// Clusters: blocks that run at the same time and write into each other's shared memory. The kernels
// for rows use them to share a row that is too long for one block. They need a GPU from 9.0 on; on
// older ones every block is alone.
#pragma once

#include "launch.cuh"

namespace opwright {

// A block's place among those that share a row: each has a part of its columns.
constexpr int max_cluster = 16;  // not every device allows more than 8
struct Cluster {
  unsigned rank = 0, size = 1;

  __device__ __forceinline__ Cluster() {
#if __CUDA_ARCH__ >= 900
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
#endif
  }
  // Waits for all blocks.
  __device__ __forceinline__ void meet() const {
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
#endif
  }
  // Sends a number to all blocks; `sum` waits for all numbers and adds them up. Successive sums
  // must alternate between two `sums` arrays.
  template <typename Number>
  __device__ __forceinline__ void send([[maybe_unused]] Number value,
                                       [[maybe_unused]] Number* sums) const {
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
    asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
#endif
  }
  template <typename Number>
  __device__ __forceinline__ Number sum([[maybe_unused]] const Number* sums) const {
    Number value = 0;
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
    for (unsigned r = 0; r < size; ++r) value += sums[r];
#endif
    return value;
  }
};

// --- the launch --------------------------------------------------

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

// Launches `grid.blocks` clusters of `cluster` blocks. The arguments must have the types of the
// kernel's parameters.
template <auto kernel, typename... Args>
cudaError_t launch_clusters(Grid grid, int cluster, Stream stream, Args... args) {
  cudaLaunchAttribute attribute;
  const auto config = cluster_config(attribute, grid, cluster, stream.handle);
  void* pointers[] = {&args...};
  const cudaError_t error =
      cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(kernel), pointers);
  if (error != cudaSuccess) cudaGetLastError();
  return error;
}

}  // namespace opwright
