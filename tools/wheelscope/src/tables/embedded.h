// The data files as text, embedded in the program by embedded.S.
#pragma once

#include <string_view>

namespace wheelscope::embedded {

#define EMBEDDED(name)                                                  \
  extern "C" const char wheelscope_##name[], wheelscope_##name##_end[]; \
  inline std::string_view name() {                                      \
    return {wheelscope_##name, wheelscope_##name##_end};                \
  }

EMBEDDED(manylinux)
EMBEDDED(cuda)
EMBEDDED(torch_shims)
EMBEDDED(torch_symbols)
EMBEDDED(python_abi3)
EMBEDDED(driver_symbols)
EMBEDDED(cudart)
EMBEDDED(platform_symbols)
EMBEDDED(cuda_libraries)
EMBEDDED(explain)
EMBEDDED(missing)
EMBEDDED(providers)
EMBEDDED(attributes)
EMBEDDED(atlas_style)
EMBEDDED(atlas_search)

#undef EMBEDDED

}  // namespace wheelscope::embedded
