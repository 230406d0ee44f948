// An elementwise op's function object, applied to elements and to vectors of them.
#pragma once

#include <utility>

#include "launch.cuh"

namespace opwright {

template <typename T, int outputs>
struct Outputs {
  T* output[outputs];
};

template <typename T, typename Function, size_t... I>
__device__ __forceinline__ auto call(const Function& function, const T* elements,
                                     std::index_sequence<I...>) {
  return function(load(elements[I])...);
}
// Computes the function's results for one element of each input.
template <typename T, int inputs, int outputs, typename Function>
__device__ __forceinline__ void apply(const Function& function, const T (&elements)[inputs],
                                      T (&results)[outputs]) {
  const auto made = call(function, elements, std::make_index_sequence<inputs>{});
  if constexpr (outputs == 2) {
    results[0] = store<T>(made.first);
    results[1] = store<T>(made.second);
  } else {
    results[0] = store<T>(made);
  }
}
template <typename T, int inputs, int outputs, typename Function>
__device__ __forceinline__ void apply_and_store(const Function& function,
                                                const T (&elements)[inputs],
                                                const Outputs<T, outputs>& out, int64_t at) {
  T results[outputs];
  apply(function, elements, results);
#pragma unroll
  for (int o = 0; o < outputs; ++o) out.output[o][at] = results[o];
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

// Vectors are passed as bytes: as elements, each would take a register.
template <typename T>
__device__ __forceinline__ Vector<T> as_vector(const uint4& bytes) {
  return *reinterpret_cast<const Vector<T>*>(&bytes);
}

template <typename T, typename Function, size_t... I>
__device__ __forceinline__ uint32_t apply_packed(const Function& function, const uint32_t* words,
                                                 std::index_sequence<I...>) {
  return function(Packed<T>(words[I])...).word;
}

template <typename T, int inputs, int outputs, typename Function>
__device__ __forceinline__ void apply_and_store(const Function& function, const uint4 (&x)[inputs],
                                                const Outputs<T, outputs>& out, int64_t at) {
  if constexpr (takes_packed<T, inputs, Function>) {
    const auto result = [&](uint32_t uint4::* word) {
      uint32_t words[inputs];
#pragma unroll
      for (int i = 0; i < inputs; ++i) words[i] = x[i].*word;
      return apply_packed<T>(function, words, std::make_index_sequence<inputs>{});
    };
    *reinterpret_cast<uint4*>(out.output[0] + at) = {result(&uint4::x), result(&uint4::y),
                                                     result(&uint4::z), result(&uint4::w)};
  } else {
    Vector<T> vectors[outputs];
#pragma unroll
    for (int e = 0; e < Vector<T>::size; ++e) {
      T elements[inputs], results[outputs];
#pragma unroll
      for (int i = 0; i < inputs; ++i) elements[i] = as_vector<T>(x[i]).element[e];
      apply(function, elements, results);
#pragma unroll
      for (int o = 0; o < outputs; ++o) vectors[o].element[e] = results[o];
    }
#pragma unroll
    for (int o = 0; o < outputs; ++o)
      *reinterpret_cast<Vector<T>*>(out.output[o] + at) = vectors[o];
  }
}

}  // namespace opwright
