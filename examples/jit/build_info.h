// What CMake writes for the package's own build; here torch chooses the targets.
#pragma once

#define OPWRIGHT_EXTENSION cuda_ext_jit
#define OPWRIGHT_EXTENSION_NAME "cuda_ext_jit"
#define OPWRIGHT_VERSION "0"
#define OPWRIGHT_CUDA_COMPILER "nvcc"
#define OPWRIGHT_TARGETS "the GPUs that torch found when it compiled it"
