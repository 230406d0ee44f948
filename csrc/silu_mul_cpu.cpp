// silu_mul's gradients on the CPU.
#include "opwright/every_cpu.h"
#include "opwright/float16.h"
#include "opwright/kernel.h"
#include "silu_mul.h"

namespace opwright::cpu {

template <typename T>
void silu_mul_backward(const T* grad, const T* x, const T* y, T* grad_x, T* grad_y, int64_t n) {
  using C = Compute<T>;
  for (int64_t i = 0; i < n; ++i) {
    C grads[2];
    SiluMul<C>().gradients(load(grad[i]), load(x[i]), load(y[i]), grads[0], grads[1]);
    grad_x[i] = Store<T>::from(grads[0]);
    grad_y[i] = Store<T>::from(grads[1]);
  }
}

OPWRIGHT_KERNEL(silu_mul_backward<float>, silu_mul_backward_schema)
OPWRIGHT_KERNEL(silu_mul_backward<double>, silu_mul_backward_schema)
OPWRIGHT_KERNEL(silu_mul_backward<Half>, silu_mul_backward_schema)
OPWRIGHT_KERNEL(silu_mul_backward<BFloat16>, silu_mul_backward_schema)

}  // namespace opwright::cpu
