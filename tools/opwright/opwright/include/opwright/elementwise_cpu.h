// The CPU engine for elementwise ops: plain loops over a range of output elements, which compilers
// vectorise.
#pragma once

#include <algorithm>

#include "every_cpu.h"
#include "float16.h"

#define OPWRIGHT_DEFINE(op)                                             \
  OPWRIGHT_EVERY_CPU OPWRIGHT_ON_CPU(op) {                              \
    cpu::elementwise<op>(dtype, operands, numbers, layout, begin, end); \
  }
#include "elementwise.h"

namespace opwright::cpu {

// One input along a row: `stride` is 1, 0 (one value for the whole row) or any other.
enum class Along { row, value, any };

template <typename T, Along along>
struct Operand {
  const T* data;
  int64_t stride;
  Compute<T> value;

  OPWRIGHT_INLINE Operand(const T* from, int64_t by) : data(from), stride(by), value(load(*from)) {}
  OPWRIGHT_INLINE Compute<T> operator[](int64_t i) const {
    if constexpr (along == Along::row) return load(data[i]);
    if constexpr (along == Along::value) return value;
    return load(data[i * stride]);
  }
};

template <typename T, typename Function, typename... Operands>
OPWRIGHT_INLINE void fill_row(const Function& function, T* const* out, int64_t n, Operands... x) {
  T *first = out[0], *second = out[1];
  for (int64_t i = 0; i < n; ++i) {
    const auto made = function(x[i]...);
    if constexpr (std::is_same_v<std::decay_t<decltype(made)>, Pair<Compute<T>>>) {
      first[i] = Store<T>::from(made.first);
      second[i] = Store<T>::from(made.second);
    } else {
      first[i] = Store<T>::from(made);
    }
  }
}

template <typename T, Along... along, typename Function, size_t... I>
OPWRIGHT_INLINE void fill_row_along(const Function& function, const T* const* in,
                                    const int64_t* strides, T* const* out, int64_t n,
                                    std::index_sequence<I...>) {
  fill_row(function, out, n, Operand<T, along>(in[I], strides[I])...);
}

template <Along along, size_t>
constexpr Along repeated = along;

template <typename T, typename Function, size_t... I>
OPWRIGHT_INLINE void fill_any_row(const Function& function, const T* const* in,
                                  const int64_t* strides, T* const* out, int64_t n,
                                  std::index_sequence<I...> all) {
  if (((strides[I] == 1) && ...)) {
    fill_row_along<T, repeated<Along::row, I>...>(function, in, strides, out, n, all);
  } else {
    fill_row_along<T, repeated<Along::any, I>...>(function, in, strides, out, n, all);
  }
}

// Fills a row of output elements. Rows of two inputs, one of them constant, vectorise too.
template <int inputs, typename T, typename Function>
OPWRIGHT_INLINE void fill_row(const Function& function, const T* const* in, const int64_t* strides,
                              T* const* out, int64_t n) {
  constexpr std::make_index_sequence<inputs> all{};
  if constexpr (inputs == 2) {
    if (strides[0] == 1 && strides[1] == 0)
      return fill_row_along<T, Along::row, Along::value>(function, in, strides, out, n, all);
    if (strides[0] == 0 && strides[1] == 1)
      return fill_row_along<T, Along::value, Along::row>(function, in, strides, out, n, all);
  }
  fill_any_row(function, in, strides, out, n, all);
}

// Walks the output elements [begin, end) and calls `row(offsets, position, count)` for each run
// along the fastest dimension.
template <int inputs, typename Row>
OPWRIGHT_INLINE void for_each_row(const Layout& layout, int64_t begin, int64_t end, Row&& row) {
  int64_t index[max_dims] = {};
  int64_t offsets[inputs] = {};
  int64_t rest = begin;
  for (int d = 0; d < layout.dims; ++d) {
    index[d] = rest % layout.sizes[d];
    rest /= layout.sizes[d];
    for (int i = 0; i < inputs; ++i) offsets[i] += index[d] * layout.strides[i][d];
  }
  for (int64_t position = begin; position < end;) {
    const int64_t count = std::min(layout.sizes[0] - index[0], end - position);
    row(offsets, position, count);
    position += count;
    index[0] += count;
    for (int i = 0; i < inputs; ++i) offsets[i] += count * layout.strides[i][0];
    for (int d = 0; d + 1 < layout.dims && index[d] == layout.sizes[d]; ++d) {
      index[d] = 0;
      ++index[d + 1];
      for (int i = 0; i < inputs; ++i) {
        offsets[i] += layout.strides[i][d + 1] - layout.sizes[d] * layout.strides[i][d];
      }
    }
  }
}

template <typename Op>
OPWRIGHT_INLINE void elementwise(DType dtype, const Operands& operands, const Scalar* numbers,
                                 const Layout& layout, int64_t begin, int64_t end) {
  constexpr int inputs = inputs_of<Op>;
  if constexpr (has_own_dense<Op>)
    return on_cpu(typename Op::OtherLayouts{}, dtype, operands, numbers, layout, begin, end);
  with_element_type<Op::dtypes.bits, void>(dtype, [&](auto element) __attribute__((always_inline)) {
    using T = decltype(element);
    using C = Compute<T>;
    // torch's CPU ops round a number to the tensor's dtype first; its CUDA ops do not.
    const auto function = make_function<Op, C>(
        numbers, [](const Scalar& number) { return load(Store<T>::from(number.as<C>())); });
    int64_t strides[inputs];
    for (int i = 0; i < inputs; ++i) strides[i] = layout.strides[i][0];
    for_each_row<inputs>(layout, begin, end,
                         [&](const int64_t* offsets, int64_t position, int64_t count) {
                           const T* in[inputs];
                           for (int i = 0; i < inputs; ++i)
                             in[i] = static_cast<const T*>(operands.in[i]) + offsets[i];
                           T* out[max_outputs] = {};
                           for (int o = 0; o < outputs_of<Op>; ++o)
                             out[o] = static_cast<T*>(operands.out[o]) + position;
                           fill_row<inputs>(function, in, strides, out, count);
                         });
  });
}

}  // namespace opwright::cpu
