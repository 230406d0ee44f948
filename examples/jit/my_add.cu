// The CUDA kernels of the JIT example: the op's own, and the engine's for every other layout.
#include "opwright/elementwise.cuh"

#include "add.h"
