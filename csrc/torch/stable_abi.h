// The one place that knows the gaps in torch's stable ABI (target 2.10): each piece says what it stands in for.
#pragma once

#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/accelerator.h>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/tensor.h>

#include <optional>
#include <stdexcept>
#include <string>

// Lives in libtorch_cuda, which CPU-only torch does not have. Weak, so that one library loads on both.
extern "C" __attribute__((weak)) AOTITorchError aoti_torch_get_current_cuda_stream(int32_t device_index,
                                                                                   void** ret_stream);

namespace cuda_ext {

using torch::stable::Tensor;

// STD_TORCH_CHECK puts the function, file and line of the build machine in front of what users read.
template <typename... Parts>
void check(bool condition, const Parts&... parts) {
  if (!condition) throw std::runtime_error((std::string() + ... + parts));
}

// torch::stable::empty() goes through the dispatcher by name and cannot take strides; this shim is a plain call.
inline Tensor empty_strided(const Tensor& like, int64_t dims, const int64_t* sizes, const int64_t* strides) {
  int32_t dtype, device_type;
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_dtype(like.get(), &dtype));
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_type(like.get(), &device_type));
  AtenTensorHandle out;
  TORCH_ERROR_CODE_CHECK(
      aoti_torch_empty_strided(dims, sizes, strides, dtype, device_type, like.get_device_index(), &out));
  return Tensor(out);
}

// torch::stable::Tensor::const_data_ptr(), without a copy for copy-on-write storage and without its typed variants.
inline const void* data(const Tensor& tensor) {
  return tensor.const_data_ptr();
}

// DeviceGuard allocates and always sets the device; the device is nearly always right already.
class OnDeviceOf {
 public:
  explicit OnDeviceOf(const Tensor& tensor) {
    const auto index = tensor.get_device_index();
    if (torch::stable::accelerator::getCurrentDeviceIndex() != index) guard_.emplace(index);
  }

 private:
  std::optional<torch::stable::accelerator::DeviceGuard> guard_;
};

}  // namespace cuda_ext
