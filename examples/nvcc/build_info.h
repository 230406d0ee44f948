// What CMake writes for the package's own build; here nvcc's command line chooses the targets.
#pragma once

#define CUDA_EXT_TARGETS "the GPUs that nvcc's -arch named"
