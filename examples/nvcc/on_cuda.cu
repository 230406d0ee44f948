// The ops by the CUDA engine.
#include "kernels/elementwise.cuh"

#include "elementwise_ops.h"
