// The CUDA side of a wheel: runtime, device code, the GPUs and drivers that it serves.
#pragma once

#include "facts.h"

namespace wheelscope {

CudaVerdict judge_cuda(const std::vector<LibraryFacts>& libraries);

// Whether device code for `target` (75, 90a, 100f) runs on a GPU of `capability` (7.5); tegra: one
// of the Jetson boards.
bool sass_serves(const std::string& target, const std::string& capability, bool tegra = false);
bool ptx_serves(const std::string& target, const std::string& capability);

}  // namespace wheelscope
