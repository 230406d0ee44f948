// A CUDA stream and its device, which is the current one.
#pragma once

#include <cuda_runtime_api.h>

namespace opwright {

struct Stream {
  cudaStream_t handle;
  int device;
};

}  // namespace opwright
