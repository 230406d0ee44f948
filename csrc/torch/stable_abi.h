// The one place that knows the gaps in torch's stable ABI (target 2.10): each piece says what it
// stands in for.
#pragma once

#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/library.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

// Lives in libtorch_cuda, which CPU-only torch does not have. Weak, so that one library loads on
// both.
extern "C" __attribute__((weak)) AOTITorchError aoti_torch_get_current_cuda_stream(
    int32_t device_index, void** ret_stream);

namespace cuda_ext {

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

// An op's input, in the place of torch::stable::Tensor, which asks torch anew for each fact, for
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

// An op's output: new, with `like`'s dtype and device. torch::stable::empty() takes no strides and
// finds its op by name.
class NewTensor {
 public:
  NewTensor(const Tensor& like, int64_t dims, const int64_t* sizes, const int64_t* strides) {
    AtenTensorHandle handle;
    TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(dims, sizes, strides, like.dtype,
                                                    like.device_type, like.device_index, &handle));
    handle_.reset(handle);
  }

  void* data() const {
    void* data;
    TORCH_ERROR_CODE_CHECK(torch_get_mutable_data_ptr(handle_.get(), &data));
    return data;
  }

  AtenTensorHandle release() { return handle_.release(); }

 private:
  OwnedHandle handle_;
};

// boxed<&op> is `op` as torch calls it, in the place of TORCH_BOX, which knows only
// torch::stable::Tensor.
template <typename T>
T from_stack(StableIValue value) {
  if constexpr (std::is_same_v<T, Tensor> || std::is_same_v<T, OwnedHandle>) {
    return T(torch::stable::detail::to<AtenTensorHandle>(value));
  } else {
    return torch::stable::detail::to<T>(value);
  }
}

template <typename... Params, size_t... I>
NewTensor call(NewTensor (*op)(Params...), StableIValue* stack, std::index_sequence<I...>) {
  // Every handle on the stack is owned before the op can throw.
  std::tuple<std::decay_t<Params>...> arguments{from_stack<std::decay_t<Params>>(stack[I])...};
  return std::apply(op, arguments);
}

template <typename... Params>
NewTensor call(NewTensor (*op)(Params...), StableIValue* stack) {
  return call(op, stack, std::index_sequence_for<Params...>{});
}

template <auto op>
void boxed(StableIValue* stack, uint64_t /*arguments*/, uint64_t /*results*/) {
  stack[0] = torch::stable::detail::from(call(op, stack).release());
}

}  // namespace cuda_ext
