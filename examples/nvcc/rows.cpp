// The row op by the CPU engine.
#include "opwright/rows_cpu.h"

#include "rms_norm.h"
