// The ops by the CPU engine.
#include "opwright/elementwise_cpu.h"

#include "elementwise_ops.h"
