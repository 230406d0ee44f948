// softsign on the CPU.
#include <cmath>

#include "opwright/kernel.h"

template <typename T>
void softsign_on_cpu(const T* x, T* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = x[i] / (1 + std::fabs(x[i]));
}

OPWRIGHT_KERNEL(softsign_on_cpu<float>, "softsign(Tensor x) -> Tensor")
OPWRIGHT_KERNEL(softsign_on_cpu<double>, "softsign(Tensor x) -> Tensor")
