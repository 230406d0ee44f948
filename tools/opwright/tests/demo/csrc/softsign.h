// softsign's launch function.
#pragma once

#include <cstdint>

#include "opwright/stream.h"

namespace opwright {

cudaError_t softsign(const float* x, float* out, int64_t n, Stream stream);

}  // namespace opwright
