// What a CUDA error means to the person who sees it.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

namespace opwright {

// One sentence that says what is wrong and what to do. Leaves no error pending in this library's
// CUDA runtime.
std::string explain(cudaError_t error);

}  // namespace opwright
