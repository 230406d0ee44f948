// The device code that `wheelscope dump` takes out of a wheel: PTX and cubins.
#pragma once

#include <functional>

#include "facts/wheel.h"

namespace wheelscope {

// One piece of device code, decompressed.
struct ExtractedCode {
  std::string file_name;  // pkg/library.so.0001.sm_90a.cubin
  std::string contents;
};

// All PTX or all cubins of a wheel or file; what cannot be decompressed becomes problems. `use`
// gets one at a time.
Result<void> extract_code(const WheelInput& input, CodeKind kind,
                          const std::function<void(const ExtractedCode&)>& use,
                          ProblemList& problems);

}  // namespace wheelscope
