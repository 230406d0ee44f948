// boxed<&op> wraps `op` in the form that torch calls. It replaces TORCH_BOX, which supports only
// torch::stable::Tensor.
//
// Arguments: Tensor, std::optional<Tensor>, std::vector<Tensor>, and every type that torch itself
// converts (int64_t, double, bool, std::string, std::optional and std::vector of them). Results:
// NewTensor, a std::tuple of them, or void for an op that writes into its arguments. Use TORCH_BOX
// for an op with any other signature.
#pragma once

#include <optional>
#include <tuple>
#include <vector>

#include "stable_abi.h"

namespace opwright {

template <typename T>
struct FromStack {
  static T take(StableIValue value) { return torch::stable::detail::to<T>(value); }
};

template <>
struct FromStack<OwnedHandle> {
  static OwnedHandle take(StableIValue value) {
    return OwnedHandle(torch::stable::detail::to<AtenTensorHandle>(value));
  }
};

template <>
struct FromStack<Tensor> {
  static Tensor take(StableIValue value) {
    return Tensor(torch::stable::detail::to<AtenTensorHandle>(value));
  }
};

// torch boxes an optional value as a pointer to the value's own box, or null without a value.
template <typename T>
struct FromStack<std::optional<T>> {
  static std::optional<T> take(StableIValue value) {
    const std::unique_ptr<StableIValue> inner(torch::stable::detail::to<StableIValue*>(value));
    if (!inner) return std::nullopt;
    return FromStack<T>::take(*inner);
  }
};

template <>
struct FromStack<std::vector<Tensor>> {
  static std::vector<Tensor> take(StableIValue value) {
    struct Delete {
      void operator()(StableListHandle list) const { torch_delete_list(list); }
    };
    const std::unique_ptr<std::remove_pointer_t<StableListHandle>, Delete> list(
        torch::stable::detail::to<StableListHandle>(value));
    size_t size;
    TORCH_ERROR_CODE_CHECK(torch_list_size(list.get(), &size));
    std::vector<Tensor> tensors;
    tensors.reserve(size);
    for (size_t i = 0; i < size; ++i) {
      StableIValue item;
      TORCH_ERROR_CODE_CHECK(torch_list_get_item(list.get(), i, &item));
      tensors.push_back(FromStack<Tensor>::take(item));
    }
    return tensors;
  }
};

inline void put_results(StableIValue* stack, NewTensor result) {
  stack[0] = torch::stable::detail::from(result.release());
}
template <typename... Results>
void put_results(StableIValue* stack, std::tuple<Results...> results) {
  std::apply(
      [&](auto&... result) { ((*stack++ = torch::stable::detail::from(result.release())), ...); },
      results);
}

template <auto op, typename Result, typename... Params, size_t... I>
void call(Result (*)(Params...), StableIValue* stack, std::index_sequence<I...>) {
  // Every handle on the stack is owned before the op can throw.
  std::tuple<std::decay_t<Params>...> arguments{FromStack<std::decay_t<Params>>::take(stack[I])...};
  if constexpr (std::is_void_v<Result>) {
    std::apply(op, arguments);
  } else {
    put_results(stack, std::apply(op, arguments));
  }
}

template <auto op, typename Result, typename... Params>
void call(Result (*function)(Params...), StableIValue* stack) {
  call<op>(function, stack, std::index_sequence_for<Params...>{});
}

template <auto op>
void boxed(StableIValue* stack, uint64_t /*arguments*/, uint64_t /*results*/) {
  call<op>(op, stack);
}

}  // namespace opwright
