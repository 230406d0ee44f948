// The element types the ops work on, and the arithmetic each is computed in.
//
// Addition has the same bits for signed and unsigned integers, and unsigned overflow is defined, so
// each integer width is computed as the unsigned type. float16 and bfloat16 are added in float32
// and rounded once, as torch does.
#pragma once

#include <cstdint>
#include <type_traits>

#if defined(__CUDACC__)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#define CUDA_EXT_HOST_DEVICE __host__ __device__
#else
#define CUDA_EXT_HOST_DEVICE
#endif

namespace cuda_ext {

enum class DType {
  float16,
  bfloat16,
  float32,
  float64,
  int8,
  int16,
  int32,
  int64,
  uint8,
  complex64,
  complex128
};

template <typename T>
struct Complex {
  T real, imag;
};

template <typename T>
CUDA_EXT_HOST_DEVICE Complex<T> operator+(Complex<T> a, Complex<T> b) {
  return {static_cast<T>(a.real + b.real), static_cast<T>(a.imag + b.imag)};
}

// A Python number. An int keeps all 64 bits; a float or complex keeps its doubles.
struct Scalar {
  enum class Kind { integer, real, complex } kind;
  int64_t integer;
  Complex<double> number;

  static Scalar from(int64_t value) {
    return {Kind::integer, value, {static_cast<double>(value), 0}};
  }
  static Scalar from(double value) { return {Kind::real, 0, {value, 0}}; }
  static Scalar from(double real, double imag) { return {Kind::complex, 0, {real, imag}}; }
};

#if defined(__CUDACC__)
using Half = __half;
using BFloat16 = __nv_bfloat16;
#else
// On the host the 16-bit floats are storage; add_cpu.cpp converts them.
struct Half {
  uint16_t bits;
};
struct BFloat16 {
  uint16_t bits;
};
#endif

// The type an element is computed in: itself, or float32 for the 16-bit floats.
template <typename T>
using Compute =
    std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float, T>;

// The scalar as the compute type C. The binding has refused what would lose meaning (a float for an
// integer tensor).
template <typename C>
C scalar_as(const Scalar& value) {
  if constexpr (std::is_same_v<C, Complex<float>>) {
    return {static_cast<float>(value.number.real), static_cast<float>(value.number.imag)};
  } else if constexpr (std::is_same_v<C, Complex<double>>) {
    return value.number;
  } else if constexpr (std::is_integral_v<C>) {
    return static_cast<C>(value.integer);
  } else {
    return static_cast<C>(value.number.real);
  }
}

// Calls `use(T{})` with the element type of `dtype`. Always inlined, so that the CPU's loops are
// compiled for the processor their caller is compiled for.
template <typename Use>
inline __attribute__((always_inline)) auto with_element_type(DType dtype, Use&& use) {
  switch (dtype) {
    case DType::float16:
      return use(Half{});
    case DType::bfloat16:
      return use(BFloat16{});
    case DType::float32:
      return use(float{});
    case DType::float64:
      return use(double{});
    case DType::int8:
    case DType::uint8:
      return use(uint8_t{});
    case DType::int16:
      return use(uint16_t{});
    case DType::int32:
      return use(uint32_t{});
    case DType::int64:
      return use(uint64_t{});
    case DType::complex64:
      return use(Complex<float>{});
    case DType::complex128:
      break;
  }
  return use(Complex<double>{});
}

}  // namespace cuda_ext
