// Explains CUDA errors to users.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

namespace opwright {

// Says what is wrong and, where possible, what to do. Leaves no error pending in this library's
// CUDA runtime.
std::string explain(cudaError_t error);

}  // namespace opwright
