// The one place that knows the gaps in torch's stable ABI (target 2.10): each piece says what it
// stands in for.
#pragma once

#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/library.h>

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

// A tensor that this library owns, in the place of torch::stable::Tensor, which shares ownership
// and copies its handle on the way out, and whose scalar_type() asks torch for each dtype in turn.
// Together they cost a tenth of a call.
class Tensor {
 public:
  explicit Tensor(AtenTensorHandle handle) : handle_(handle) {}
  Tensor(Tensor&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Tensor& operator=(Tensor&&) = delete;
  ~Tensor() {
    if (handle_) aoti_torch_delete_tensor_object(handle_);
  }
  AtenTensorHandle release() { return std::exchange(handle_, nullptr); }

  int64_t dims() const { return get<int64_t>(aoti_torch_get_dim); }
  int64_t numel() const { return get<int64_t>(aoti_torch_get_numel); }
  const int64_t* sizes() const { return get<int64_t*>(aoti_torch_get_sizes); }
  const int64_t* strides() const { return get<int64_t*>(aoti_torch_get_strides); }
  bool is_contiguous() const { return get<bool>(aoti_torch_is_contiguous); }
  int32_t dtype() const { return get<int32_t>(aoti_torch_get_dtype); }
  int32_t device_type() const { return get<int32_t>(aoti_torch_get_device_type); }
  int32_t device_index() const { return get<int32_t>(aoti_torch_get_device_index); }
  const void* data() const { return get<const void*>(torch_get_const_data_ptr); }
  void* mutable_data() const { return get<void*>(torch_get_mutable_data_ptr); }

 private:
  template <typename T>
  T get(AOTITorchError (*getter)(AtenTensorHandle, T*)) const {
    T value;
    TORCH_ERROR_CODE_CHECK(getter(handle_, &value));
    return value;
  }

  AtenTensorHandle handle_;
};

// A new tensor with `like`'s dtype and device. torch::stable::empty() takes no strides and finds
// its op by name.
inline Tensor empty_strided(const Tensor& like, int64_t dims, const int64_t* sizes,
                            const int64_t* strides) {
  AtenTensorHandle out;
  TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(dims, sizes, strides, like.dtype(),
                                                  like.device_type(), like.device_index(), &out));
  return Tensor(out);
}

// boxed<&op> is `op` as torch calls it, in the place of TORCH_BOX, which knows only
// torch::stable::Tensor.
template <typename T>
T from_stack(StableIValue value) {
  if constexpr (std::is_same_v<T, Tensor>) {
    return Tensor(torch::stable::detail::to<AtenTensorHandle>(value));
  } else {
    return torch::stable::detail::to<T>(value);
  }
}

template <typename... Params, size_t... I>
Tensor call(Tensor (*op)(Params...), StableIValue* stack, std::index_sequence<I...>) {
  // Every handle on the stack is owned before the op can throw.
  std::tuple<std::decay_t<Params>...> arguments{from_stack<std::decay_t<Params>>(stack[I])...};
  return std::apply(op, arguments);
}

template <typename... Params>
Tensor call(Tensor (*op)(Params...), StableIValue* stack) {
  return call(op, stack, std::index_sequence_for<Params...>{});
}

template <auto op>
void boxed(StableIValue* stack, uint64_t /*arguments*/, uint64_t /*results*/) {
  stack[0] = torch::stable::detail::from(call(op, stack).release());
}

}  // namespace cuda_ext
