// The one place that knows the gaps in torch's stable ABI (target 2.10): each piece says what it
// stands in for.
#pragma once

#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/library.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

// Lives in libtorch_cuda, which CPU-only torch does not have. Weak, so that one library loads on
// both.
extern "C" __attribute__((weak)) AOTITorchError
aoti_torch_get_current_cuda_stream(int32_t device_index, void** ret_stream);
// What went wrong in the last call that failed. There from torch 2.13 on.
extern "C" __attribute__((weak)) const char* torch_exception_get_what_without_backtrace();

namespace opwright {

// An op's name as users know it: the schema up to its overload's name or its arguments, without the
// underscore of a private twin.
struct OpName {
  const char* schema;

  friend std::string operator+(std::string text, OpName op) {
    const char* begin = op.schema + (*op.schema == '_');
    const char* end = begin;
    while (*end && *end != '(' && *end != '.') ++end;
    return text.append(begin, end);
  }
};

// STD_TORCH_CHECK puts the function, file and line of the build machine in front of what users
// read.
template <typename... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  throw std::runtime_error((std::string() + ... + parts));
}

struct DeleteTensor {
  void operator()(AtenTensorHandle handle) const { aoti_torch_delete_tensor_object(handle); }
};
using OwnedHandle = std::unique_ptr<AtenTensorOpaque, DeleteTensor>;

// An op's argument, in the place of torch::stable::Tensor, which asks torch anew for each fact, for
// each dtype in turn, and shares ownership on the heap. Together that costs a tenth of a call.
class Tensor {
 public:
  explicit Tensor(AtenTensorHandle handle) : handle_(handle) {
    dims = get<int64_t>(aoti_torch_get_dim);
    sizes = get<int64_t*>(aoti_torch_get_sizes);
    strides = get<int64_t*>(aoti_torch_get_strides);
    dtype = get<int32_t>(aoti_torch_get_dtype);
    device_type = get<int32_t>(aoti_torch_get_device_type);
    device_index = get<int32_t>(aoti_torch_get_device_index);
  }

  const void* data() const { return get<const void*>(torch_get_const_data_ptr); }
  void* mutable_data() const { return get<void*>(torch_get_mutable_data_ptr); }

  int64_t numel() const {
    return std::accumulate(sizes, sizes + dims, int64_t{1}, std::multiplies<>());
  }

  AtenTensorHandle handle() const { return handle_.get(); }

  int64_t dims;
  const int64_t *sizes, *strides;
  int32_t dtype;  // as the torch that is loaded numbers them
  int32_t device_type, device_index;

 private:
  template <typename T>
  T get(AOTITorchError (*getter)(AtenTensorHandle, T*)) const {
    T value;
    TORCH_ERROR_CODE_CHECK(getter(handle_.get(), &value));
    return value;
  }

  OwnedHandle handle_;
};

inline std::string device_name(const Tensor& tensor) {
  if (tensor.device_type == aoti_torch_device_type_cpu()) return "cpu";
  const bool is_cuda = tensor.device_type == aoti_torch_device_type_cuda();
  return (is_cuda ? "cuda:" : "device ") + std::to_string(tensor.device_index);
}

// Says that memory could not be had, and why as far as the torch that is loaded tells.
[[noreturn]] void fail_allocation(OpName op, const Tensor& like, int32_t dtype, int64_t dims,
                                  const int64_t* sizes);

// An op's result: new, on `like`'s device. torch::stable::empty() takes no strides and finds its op
// by name.
class NewTensor {
 public:
  NewTensor(OpName op, const Tensor& like, int32_t dtype, int64_t dims, const int64_t* sizes,
            const int64_t* strides) {
    AtenTensorHandle handle;
    if (aoti_torch_empty_strided(dims, sizes, strides, dtype, like.device_type, like.device_index,
                                 &handle) != AOTI_TORCH_SUCCESS)
      fail_allocation(op, like, dtype, dims, sizes);
    handle_.reset(handle);
  }

  void* data() const {
    void* data;
    TORCH_ERROR_CODE_CHECK(torch_get_mutable_data_ptr(handle_.get(), &data));
    return data;
  }

  AtenTensorHandle handle() const { return handle_.get(); }
  AtenTensorHandle release() { return handle_.release(); }

 private:
  OwnedHandle handle_;
};

}  // namespace opwright
