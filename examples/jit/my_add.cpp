// The binding of the JIT example: one op, on the CPU and on CUDA, for contiguous tensors of one
// shape.
#include "opwright/elementwise_cpu.h"

#include "add.h"
#include "opwright/torch/arguments.h"
#include "opwright/torch/boxing.h"
#include "opwright/torch/cuda_device.h"

namespace opwright {
namespace {

constexpr OpName name{"jit my_add"};

DType check_inputs(const Tensor& a, const Tensor& b) {
  const Argument arguments[] = {{"a", &a}, {"b", &b}};
  int64_t expected = 1;
  for (int64_t d = a.dims - 1; d >= 0; --d) {
    if (a.strides[d] != expected || b.dims != a.dims || b.sizes[d] != a.sizes[d] ||
        b.strides[d] != expected)
      fail(name, ": takes contiguous tensors of one shape");
    expected *= a.sizes[d];
  }
  return checked_dtype(name, arguments, 2, my_add::dtypes);
}

NewTensor my_add_cpu(const Tensor& a, const Tensor& b) {
  const DType dtype = check_inputs(a, b);
  NewTensor out(name, a, a.dtype, a.dims, a.sizes, a.strides);
  const Operands operands{{a.data(), b.data()}, out.data()};
  on_cpu(my_add{}, dtype, operands, nullptr, dense_layout(2, a.numel()), 0, a.numel());
  return out;
}

#if defined(OPWRIGHT_WITH_CUDA)
NewTensor my_add_cuda(const Tensor& a, const Tensor& b) {
  const DType dtype = check_inputs(a, b);
  const OnDeviceOf device(a);
  NewTensor out(name, a, a.dtype, a.dims, a.sizes, a.strides);
  const Operands operands{{a.data(), b.data()}, out.data()};
  check_launch(name, on_cuda(my_add{}, dtype, operands, nullptr, dense_layout(2, a.numel()),
                             current_stream(name, a)));
  return out;
}
#endif

}  // namespace
}  // namespace opwright

STABLE_TORCH_LIBRARY(cuda_ext_jit, m) {
  m.def("my_add(Tensor a, Tensor b) -> Tensor");
}

STABLE_TORCH_LIBRARY_IMPL(cuda_ext_jit, CPU, m) {
  m.impl("my_add", opwright::boxed<&opwright::my_add_cpu>);
}

#if defined(OPWRIGHT_WITH_CUDA)
STABLE_TORCH_LIBRARY_IMPL(cuda_ext_jit, CUDA, m) {
  m.impl("my_add", opwright::boxed<&opwright::my_add_cuda>);
}
#endif
