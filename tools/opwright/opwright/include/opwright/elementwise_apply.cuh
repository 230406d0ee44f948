// An elementwise op's function object, applied to elements and to vectors of them.
#pragma once

#include <utility>

#include "launch.cuh"

namespace opwright {

template <typename Function, typename T, size_t... I>
__device__ __forceinline__ T apply(const Function& function, const T* elements,
                                   std::index_sequence<I...>) {
  return store<T>(function(load(elements[I])...));
}
// The function's result for one element of each input.
template <typename T, int inputs, typename Function>
__device__ __forceinline__ T apply(const Function& function, const T (&elements)[inputs]) {
  return apply(function, elements, std::make_index_sequence<inputs>{});
}

// Whether a function takes several small integers at once.
template <typename T, int inputs, typename Function>
constexpr bool takes_packed = [] {
  if constexpr (std::is_integral_v<T> && sizeof(T) < 4) {
    if constexpr (inputs == 1) return std::is_invocable_v<Function, Packed<T>>;
    if constexpr (inputs == 2) return std::is_invocable_v<Function, Packed<T>, Packed<T>>;
  }
  return false;
}();

// Vectors are handed on as bytes: as elements, each would take a register.
template <typename T>
__device__ __forceinline__ Vector<T> as_vector(const uint4& bytes) {
  return *reinterpret_cast<const Vector<T>*>(&bytes);
}

template <typename T, typename Function, size_t... I>
__device__ __forceinline__ uint32_t apply_packed(const Function& function, const uint32_t* words,
                                                 std::index_sequence<I...>) {
  return function(Packed<T>(words[I])...).word;
}

template <typename T, int inputs, typename Function>
__device__ __forceinline__ void apply_and_store(const Function& function, const uint4 (&x)[inputs],
                                                T* out) {
  if constexpr (takes_packed<T, inputs, Function>) {
    const auto result = [&](uint32_t uint4::* word) {
      uint32_t words[inputs];
#pragma unroll
      for (int i = 0; i < inputs; ++i) words[i] = x[i].*word;
      return apply_packed<T>(function, words, std::make_index_sequence<inputs>{});
    };
    *reinterpret_cast<uint4*>(out) = {result(&uint4::x), result(&uint4::y), result(&uint4::z),
                                      result(&uint4::w)};
  } else {
    Vector<T> result;
#pragma unroll
    for (int e = 0; e < Vector<T>::size; ++e) {
      T elements[inputs];
#pragma unroll
      for (int i = 0; i < inputs; ++i) elements[i] = as_vector<T>(x[i]).element[e];
      result.element[e] = apply(function, elements);
    }
    *reinterpret_cast<Vector<T>*>(out) = result;
  }
}

}  // namespace opwright
