// Recognises a CUDA runtime that was linked in statically, and derives its version from evidence.
#pragma once

#include <optional>

#include "readers/elf_file.h"

namespace wheelscope {

struct StaticCudart {
  std::string version;                // 12.9; empty when the evidence does not say
  std::vector<std::string> evidence;  // one sentence each
};

std::optional<StaticCudart> find_static_cudart(const Elf& elf);

}  // namespace wheelscope
