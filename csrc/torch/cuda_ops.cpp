// The ops on CUDA: the kernels on torch's current stream of the tensors' device. In a build without
// CUDA, the error.
#include <torch/csrc/stable/accelerator.h>

#include <optional>

#include "../kernels/add.h"
#include "output.h"

#if defined(CUDA_EXT_WITH_CUDA)
#include "../kernels/cuda_error.h"
#include "../kernels/driver.h"
#endif

namespace cuda_ext {
namespace {

#if defined(CUDA_EXT_WITH_CUDA)

using AddKernel = cudaError_t(DType, const void*, const void*, void*, int64_t, Stream);

// Makes the tensor's device current, for as long as this lives. It nearly always is already; only
// where it is not, torch's guard is asked, which allocates.
class OnDeviceOf {
 public:
  explicit OnDeviceOf(const Tensor& tensor) {
    const int index = tensor.device_index;
    if (current_device() == index) return;
    guard_.emplace(index);
    // A thread that has not used CUDA yet has no context.
    if (current_device() != index) cudaSetDevice(index);
  }

 private:
  std::optional<torch::stable::accelerator::DeviceGuard> guard_;
};

Stream current_stream(const char* op, const Tensor& tensor) {
  if (!aoti_torch_get_current_cuda_stream) fail(op, ": this torch was built without CUDA");
  void* stream = nullptr;
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_cuda_stream(tensor.device_index, &stream));
  return {static_cast<cudaStream_t>(stream), tensor.device_index};
}

void check_launch(const char* op, cudaError_t error) {
  if (error != cudaSuccess) fail(op, ": ", explain(error));
}

NewTensor add(const char* op, AddKernel* kernel, const Tensor& a, const Tensor& b) {
  const DType dtype = checked_dtype(op, a, &b);
  const OnDeviceOf device(a);
  const Stream stream = current_stream(op, a);
  const void *from_a = a.data(), *from_b = b.data();
  return fill_output(
      op, a, &b,
      [=](void* out, int64_t n) {
        check_launch(op, kernel(dtype, from_a, from_b, out, n, stream));
      },
      [=](void* out, const Layout& layout) {
        check_launch(op, strided_add(dtype, from_a, from_b, out, layout, stream));
      });
}

NewTensor cust_add(const Tensor& x, const Scalar& value) {
  const char* op = "cust_add";
  const DType dtype = checked_dtype(op, x, nullptr);
  check_scalar(op, dtype, value);
  const OnDeviceOf device(x);
  const Stream stream = current_stream(op, x);
  const void* from = x.data();
  return fill_output(
      op, x, nullptr,
      [=](void* out, int64_t n) {
        check_launch(op, cuda_ext::cust_add(dtype, from, value, out, n, stream));
      },
      [=](void* out, const Layout& layout) {
        check_launch(op, strided_cust_add(dtype, from, value, out, layout, stream));
      });
}

NewTensor my_add(const Tensor& a, const Tensor& b) {
  return add("my_add", &cuda_ext::add, a, b);
}
NewTensor my_fast_add(const Tensor& a, const Tensor& b) {
  return add("my_fast_add", &cuda_ext::fast_add, a, b);
}

#else

[[noreturn]] void without_cuda(const char* op) {
  fail(op,
       ": this build of cuda_ext_example has no CUDA code; install a wheel from PyPI, or build it "
       "with "
       "CUDA_EXT_CUDA=on");
}

NewTensor my_add(const Tensor&, const Tensor&) {
  without_cuda("my_add");
}
NewTensor my_fast_add(const Tensor&, const Tensor&) {
  without_cuda("my_fast_add");
}
NewTensor cust_add(const Tensor&, const Scalar&) {
  without_cuda("cust_add");
}

#endif

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

STABLE_TORCH_LIBRARY_IMPL(cuda_ext_example, CUDA, m) {
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
