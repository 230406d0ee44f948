// The row op by the CUDA engine.
#include "opwright/rows.cuh"

#include "rms_norm.h"
