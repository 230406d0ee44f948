// The CUDA side of a wheel: runtime, device code, the GPUs and drivers that it serves.
#pragma once

#include "verdicts/verdicts.h"

namespace wheelscope {

CudaVerdict judge_cuda(const std::vector<LibraryFacts>& libraries);

// Whether device code for `target` (75, 90a, 100f) runs on a GPU of `capability` (7.5).
bool sass_serves(const std::string& target, const std::string& capability);
bool ptx_serves(const std::string& target, const std::string& capability);

// What a GPU takes of code for these targets, whose order is that of target_before: SASS that runs
// on it, else PTX that its driver compiles; of several the nearest. Code for the same architecture
// with and without a suffix is equally near. Empty targets: nothing serves it.
struct Choice {
  Served served = Served::no;
  std::vector<std::string> targets;  // the last is the most specific
};
Choice choose(const std::vector<std::string>& sass, const std::vector<std::string>& ptx,
              const std::string& capability);

// The order of targets: 75, 90, 90a, 100f.
bool target_before(const std::string& a, const std::string& b);

}  // namespace wheelscope
