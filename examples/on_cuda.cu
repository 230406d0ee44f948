// The ops by the CUDA engine.
#include "opwright/elementwise.cuh"

#include "elementwise_ops.h"
