// The CUDA side of a wheel: runtime, device code, the GPUs and drivers that it serves.
#pragma once

#include "verdicts/verdicts.h"

namespace wheelscope {

CudaVerdict judge_cuda(const std::vector<LibraryFacts>& libraries);

// Whether device code for `target` (75, 90a, 100f) runs on a GPU of `capability` (7.5).
bool sass_serves(const std::string& target, const std::string& capability);
bool ptx_serves(const std::string& target, const std::string& capability);

// The order of targets: 75, 90, 90a, 100f.
bool target_before(const std::string& a, const std::string& b);

}  // namespace wheelscope
