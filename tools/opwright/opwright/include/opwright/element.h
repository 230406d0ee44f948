// The element types that the ops work on, and the type in which each is computed.
//
// float16 and bfloat16 are computed in float32 and rounded once, as torch does.
#pragma once

#include <cstdint>
#include <type_traits>

#if defined(__CUDACC__)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
// A function for host and device, inlined into its callers.
#define OPWRIGHT_FUNCTION __host__ __device__ __forceinline__
#else
#define OPWRIGHT_FUNCTION inline __attribute__((always_inline))
#endif

namespace opwright {

template <typename T>
struct Complex {
  T real, imag;
};

#if defined(__CUDACC__)
using Half = __half;
using BFloat16 = __nv_bfloat16;
#else
// On the host the 16-bit floats are only storage; float16.h converts them.
struct Half {
  uint16_t bits;
};
struct BFloat16 {
  uint16_t bits;
};
#endif

// The only list of dtypes: torch's name and the element type of each.
#define OPWRIGHT_DTYPES(X)     \
  X(float32, float)            \
  X(float16, Half)             \
  X(bfloat16, BFloat16)        \
  X(float64, double)           \
  X(int8, int8_t)              \
  X(int16, int16_t)            \
  X(int32, int32_t)            \
  X(int64, int64_t)            \
  X(uint8, uint8_t)            \
  X(complex64, Complex<float>) \
  X(complex128, Complex<double>)

enum class DType {
#define OPWRIGHT_NAME(name, type) name,
  OPWRIGHT_DTYPES(OPWRIGHT_NAME)
#undef OPWRIGHT_NAME
};

constexpr const char* dtype_names[] = {
#define OPWRIGHT_NAME(name, type) #name,
    OPWRIGHT_DTYPES(OPWRIGHT_NAME)
#undef OPWRIGHT_NAME
};
constexpr int dtype_count = sizeof dtype_names / sizeof *dtype_names;

constexpr int element_sizes[] = {
#define OPWRIGHT_SIZE(name, type) static_cast<int>(sizeof(type)),
    OPWRIGHT_DTYPES(OPWRIGHT_SIZE)
#undef OPWRIGHT_SIZE
};

// The dtypes that an op takes.
struct DTypes {
  uint32_t bits = 0;

  constexpr bool has(DType dtype) const { return bits >> static_cast<int>(dtype) & 1; }
  friend constexpr DTypes operator|(DTypes a, DTypes b) { return {a.bits | b.bits}; }
};
template <typename... Names>
constexpr DTypes dtypes_of(Names... names) {
  return {(0u | ... | (1u << static_cast<int>(names)))};
}
constexpr DTypes floating_dtypes =
    dtypes_of(DType::float32, DType::float16, DType::bfloat16, DType::float64);
constexpr DTypes integer_dtypes =
    dtypes_of(DType::int8, DType::int16, DType::int32, DType::int64, DType::uint8);
constexpr DTypes complex_dtypes = dtypes_of(DType::complex64, DType::complex128);
constexpr DTypes every_dtype = floating_dtypes | integer_dtypes | complex_dtypes;

// Calls `use(T{})` with the element type of `dtype`, which must be one of `dtypes`; only those are
// compiled. Always inlined, so that the CPU's loops are compiled for the same processor as their
// caller.
template <uint32_t dtypes, typename Result, typename Use>
inline __attribute__((always_inline)) Result with_element_type(DType dtype, Use&& use) {
  switch (dtype) {
#define OPWRIGHT_CASE(name, type)                                      \
  case DType::name:                                                    \
    if constexpr (DTypes{dtypes}.has(DType::name)) return use(type{}); \
    break;
    OPWRIGHT_DTYPES(OPWRIGHT_CASE)
#undef OPWRIGHT_CASE
  }
  return Result();
}

// The type in which an element is computed: its own, or float32 for the 16-bit floats.
template <typename T>
using Compute =
    std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float, T>;

// a + b. Integers wrap around, as torch's do; C++ guarantees that only for unsigned ones.
template <typename T>
OPWRIGHT_FUNCTION T plus(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;
    return static_cast<T>(
        static_cast<Unsigned>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b)));
  } else {
    return a + b;
  }
}
template <typename T>
OPWRIGHT_FUNCTION Complex<T> plus(Complex<T> a, Complex<T> b) {
  return {a.real + b.real, a.imag + b.imag};
}

// A word of int8, uint8 or int16 elements that are computed together.
template <typename T>
struct Packed {
  uint32_t word;

  OPWRIGHT_FUNCTION explicit Packed(uint32_t elements) : word(elements) {}
  OPWRIGHT_FUNCTION explicit Packed(T element)  // in every place
      : word(static_cast<std::make_unsigned_t<T>>(element) *
             (sizeof(T) == 1 ? 0x01010101u : 0x00010001u)) {}
};
template <typename T>
OPWRIGHT_FUNCTION Packed<T> plus(Packed<T> a, Packed<T> b) {
  constexpr uint32_t high =
      sizeof(T) == 1 ? 0x80808080u : 0x80008000u;  // no carry leaves an element
  return Packed<T>(((a.word & ~high) + (b.word & ~high)) ^ ((a.word ^ b.word) & high));
}

// A Python number. An int keeps all 64 bits.
struct Scalar {
  bool is_integer;
  int64_t integer;
  double real;

  static Scalar from(int64_t value) { return {true, value, 0}; }
  static Scalar from(double value) { return {false, 0, value}; }

  // The number in the compute type, rounded once. For a complex type, the imaginary part is 0.
  template <typename C>
  C as() const {
    return is_integer ? convert<C>(integer) : convert<C>(real);
  }

 private:
  template <typename C, typename From>
  static C convert(From value) {
    if constexpr (std::is_same_v<C, Complex<float>>) {
      return {static_cast<float>(value), 0};
    } else if constexpr (std::is_same_v<C, Complex<double>>) {
      return {static_cast<double>(value), 0};
    } else {
      return static_cast<C>(value);
    }
  }
};

}  // namespace opwright
