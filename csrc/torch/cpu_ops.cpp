// The ops on the CPU: the vectorised loops, divided among torch's own threads.
#include <torch/csrc/stable/ops.h>

#include "../kernels/add.h"
#include "output.h"

namespace cuda_ext {
namespace {

constexpr int64_t grain_size = 32768;  // elements that are worth a thread: torch's own figure

template <typename Range>
void parallel(int64_t n, const Range& range) {
  if (n <= grain_size)
    return range(0, n);  // saves the call into torch where one thread does it all
  torch::stable::parallel_for(0, n, grain_size, range);
}

NewTensor add(const char* op, const Tensor& a, const Tensor& b) {
  const DType dtype = checked_dtype(op, a, &b);
  const void *from_a = a.data(), *from_b = b.data();
  return fill_output(
      op, a, &b,
      [=](void* out, int64_t n) {
        parallel(n, [=](int64_t begin, int64_t end) {
          cpu::add(dtype, from_a, from_b, out, begin, end);
        });
      },
      [=](void* out, const Layout& layout) {
        parallel(layout.numel, [=, &layout](int64_t begin, int64_t end) {
          cpu::strided_add(dtype, from_a, from_b, out, layout, begin, end);
        });
      });
}

NewTensor cust_add(const Tensor& x, const Scalar& value) {
  const DType dtype = checked_dtype("cust_add", x, nullptr);
  check_scalar("cust_add", dtype, value);
  const void* from = x.data();
  return fill_output(
      "cust_add", x, nullptr,
      [=](void* out, int64_t n) {
        parallel(n, [=](int64_t begin, int64_t end) {
          cpu::cust_add(dtype, from, value, out, begin, end);
        });
      },
      [=](void* out, const Layout& layout) {
        parallel(layout.numel, [=, &layout](int64_t begin, int64_t end) {
          cpu::strided_cust_add(dtype, from, value, out, layout, begin, end);
        });
      });
}

NewTensor my_add(const Tensor& a, const Tensor& b) {
  return add("my_add", a, b);
}
NewTensor my_fast_add(const Tensor& a, const Tensor& b) {
  return add("my_fast_add", a, b);
}
NewTensor cust_add_int(const Tensor& x, int64_t value) {
  return cust_add(x, Scalar::from(value));
}
NewTensor cust_add_float(const Tensor& x, double value) {
  return cust_add(x, Scalar::from(value));
}
NewTensor cust_add_complex(const Tensor& x, double real, double imag) {
  return cust_add(x, Scalar::from(real, imag));
}

}  // namespace
}  // namespace cuda_ext

STABLE_TORCH_LIBRARY_IMPL(cuda_ext_example, CPU, m) {
  m.impl("my_add", cuda_ext::boxed<&cuda_ext::my_add>);
  m.impl("my_fast_add", cuda_ext::boxed<&cuda_ext::my_fast_add>);
  m.impl("cust_add.int", cuda_ext::boxed<&cuda_ext::cust_add_int>);
  m.impl("cust_add.float", cuda_ext::boxed<&cuda_ext::cust_add_float>);
  m.impl("cust_add.complex", cuda_ext::boxed<&cuda_ext::cust_add_complex>);
  m.impl("_my_add", cuda_ext::boxed<&cuda_ext::my_add>);
  m.impl("_my_fast_add", cuda_ext::boxed<&cuda_ext::my_fast_add>);
  m.impl("_cust_add.int", cuda_ext::boxed<&cuda_ext::cust_add_int>);
  m.impl("_cust_add.float", cuda_ext::boxed<&cuda_ext::cust_add_float>);
  m.impl("_cust_add.complex", cuda_ext::boxed<&cuda_ext::cust_add_complex>);
}
