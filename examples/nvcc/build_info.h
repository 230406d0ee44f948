// What CMake writes for the package's own build; here nvcc's command line chooses the targets.
#pragma once

#define OPWRIGHT_TARGETS "the GPUs that nvcc's -arch named"
