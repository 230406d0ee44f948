// The only place that works around gaps in torch's stable ABI (target 2.10); each piece says what
// it replaces.
#pragma once

#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/library.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

// Defined in libtorch_cuda, which a CPU-only torch does not have. Weak, so that one library loads
// with either torch.
extern "C" __attribute__((weak)) AOTITorchError
aoti_torch_get_current_cuda_stream(int32_t device_index, void** ret_stream);
// The error message of the last call that failed. Exists from torch 2.13 on.
extern "C" __attribute__((weak)) const char* torch_exception_get_what_without_backtrace();

namespace opwright {

// An op's name as users know it: the schema up to the overload's name or the arguments, without the
// underscore of a private op.
struct OpName {
  const char* schema;

  friend std::string operator+(std::string text, OpName op) {
    const char* begin = op.schema + (*op.schema == '_');
    const char* end = begin;
    while (*end && *end != '(' && *end != '.') ++end;
    return text.append(begin, end);
  }
};

// Replaces STD_TORCH_CHECK, whose messages begin with a function, file and line of the build
// machine.
template <typename... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  throw std::runtime_error((std::string() + ... + parts));
}

struct DeleteTensor {
  void operator()(AtenTensorHandle handle) const { aoti_torch_delete_tensor_object(handle); }
};
using OwnedHandle = std::unique_ptr<AtenTensorOpaque, DeleteTensor>;

// An op's argument. It replaces torch::stable::Tensor, which asks torch again for each fact, tries
// the dtypes one by one, and shares ownership on the heap: together that costs a tenth of a call.
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
  int32_t dtype;  // its number in the loaded torch
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

// Reports a failed allocation, with the reason if the loaded torch gives one.
[[noreturn]] void fail_allocation(OpName op, const Tensor& like, int32_t dtype, int64_t dims,
                                  const int64_t* sizes);

// An op's result: a new tensor on `like`'s device. It replaces torch::stable::empty(), which takes
// no strides and looks its op up by name.
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
