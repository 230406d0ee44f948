// The ops by the CPU engine.
#include "kernels/elementwise_cpu.h"

#include "elementwise_ops.h"
