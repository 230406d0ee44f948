// What CMake writes for the package's own build; here torch chooses the targets.
#pragma once

#define CUDA_EXT_TARGETS "the GPUs that torch found when it compiled it"
