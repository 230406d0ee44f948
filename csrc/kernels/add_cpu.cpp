// The CPU's kernels: plain loops that compilers vectorise, for one range of output elements.
//
// On x86_64 each loop is compiled three times and the processor picks one when the library loads;
// aarch64's baseline has the vectors it needs. 16-bit floats are converted with integer arithmetic
// that has no branch, so their loops vectorise too.
#include <algorithm>
#include <cstring>

#include "add.h"

#if defined(__x86_64__) && defined(__linux__)
#define CUDA_EXT_EVERY_CPU __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define CUDA_EXT_EVERY_CPU
#endif
#define CUDA_EXT_INLINE inline __attribute__((always_inline))

namespace cuda_ext::cpu {
namespace {

template <typename To, typename From>
CUDA_EXT_INLINE To bit_cast(From from) {
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

template <typename T>
CUDA_EXT_INLINE T load(T element) {
  return element;
}

CUDA_EXT_INLINE float load(BFloat16 element) {
  return bit_cast<float>(static_cast<uint32_t>(element.bits) << 16);
}

// The exponent is moved by a multiplication, which also gets subnormals right; infinities and NaNs
// are then restored.
CUDA_EXT_INLINE float load(Half element) {
  const uint32_t sign = static_cast<uint32_t>(element.bits & 0x8000) << 16;
  const uint32_t magnitude = static_cast<uint32_t>(element.bits & 0x7fff) << 13;
  const float scaled = bit_cast<float>(magnitude) * 0x1p112f;
  const uint32_t special = magnitude >= 0x0f800000u ? 0x7f800000u : 0u;
  return bit_cast<float>(bit_cast<uint32_t>(scaled) | special | sign);
}

template <typename T>
struct Store {
  static CUDA_EXT_INLINE T from(T value) { return value; }
};

// Rounds to nearest even by adding half of the last kept bit, and one more where that bit is odd.
template <>
struct Store<BFloat16> {
  static CUDA_EXT_INLINE BFloat16 from(float value) {
    const uint32_t bits = bit_cast<uint32_t>(value);
    const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1)) >> 16;
    return {static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? 0x7fc0u : rounded)};
  }
};

// Normal results round as bfloat16 does. Subnormal ones get their bits from adding 0.5, whose last
// bit has the weight of float16's smallest step, so that the addition itself rounds.
template <>
struct Store<Half> {
  static CUDA_EXT_INLINE Half from(float value) {
    const uint32_t bits = bit_cast<uint32_t>(value);
    const uint32_t sign = (bits >> 16) & 0x8000u;
    const uint32_t magnitude = bits & 0x7fffffffu;
    const uint32_t normal = (magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1)) >> 13;
    const uint32_t subnormal = bit_cast<uint32_t>(bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
    uint32_t half = magnitude < (113u << 23) ? subnormal : normal;
    half = magnitude >= 0x477ff000u ? 0x7c00u : half;  // 65520 and above round to infinity
    half = magnitude > 0x7f800000u ? 0x7e00u : half;
    return {static_cast<uint16_t>(sign | half)};
  }
};

template <typename T>
CUDA_EXT_INLINE T sum(T a, T b) {
  return Store<T>::from(static_cast<Compute<T>>(load(a) + load(b)));
}

// torch's CPU ops round a scalar to the tensor's dtype before they add it; its CUDA ops do not.
template <typename T>
CUDA_EXT_INLINE Compute<T> rounded_scalar(const Scalar& value) {
  return load(Store<T>::from(scalar_as<Compute<T>>(value)));
}

template <typename T>
CUDA_EXT_INLINE T sum_scalar(T x, Compute<T> value) {
  return Store<T>::from(static_cast<Compute<T>>(load(x) + value));
}

// Rows: the loops over one run of elements. Input strides of 1 and 0 (a broadcast value) vectorise.
template <typename T>
CUDA_EXT_INLINE void add_row(const T* a, int64_t stride_a, const T* b, int64_t stride_b, T* out,
                             int64_t n) {
  if (stride_a == 1 && stride_b == 1) {
    for (int64_t i = 0; i < n; ++i) out[i] = sum(a[i], b[i]);
  } else if (stride_a == 1 && stride_b == 0) {
    const T value = *b;
    for (int64_t i = 0; i < n; ++i) out[i] = sum(a[i], value);
  } else if (stride_a == 0 && stride_b == 1) {
    const T value = *a;
    for (int64_t i = 0; i < n; ++i) out[i] = sum(value, b[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) out[i] = sum(a[i * stride_a], b[i * stride_b]);
  }
}

template <typename T>
CUDA_EXT_INLINE void cust_add_row(const T* x, int64_t stride, Compute<T> value, T* out, int64_t n) {
  if (stride == 1) {
    for (int64_t i = 0; i < n; ++i) out[i] = sum_scalar(x[i], value);
  } else {
    for (int64_t i = 0; i < n; ++i) out[i] = sum_scalar(x[i * stride], value);
  }
}

// Walks the output elements [begin, end) and calls `row(offset_a, offset_b, position, count)` for
// each run along the fastest dimension.
template <typename Row>
CUDA_EXT_INLINE void for_each_row(const Layout& layout, int64_t begin, int64_t end, Row&& row) {
  int64_t index[max_dims] = {};
  int64_t offset[max_inputs] = {};
  int64_t rest = begin;
  for (int d = 0; d < layout.dims; ++d) {
    index[d] = rest % layout.sizes[d];
    rest /= layout.sizes[d];
    for (int i = 0; i < max_inputs; ++i) offset[i] += index[d] * layout.strides[i][d];
  }
  for (int64_t position = begin; position < end;) {
    const int64_t count = std::min(layout.sizes[0] - index[0], end - position);
    row(offset[0], offset[1], position, count);
    position += count;
    index[0] += count;
    for (int i = 0; i < max_inputs; ++i) offset[i] += count * layout.strides[i][0];
    for (int d = 0; d + 1 < layout.dims && index[d] == layout.sizes[d]; ++d) {
      index[d] = 0;
      ++index[d + 1];
      for (int i = 0; i < max_inputs; ++i) {
        offset[i] += layout.strides[i][d + 1] - layout.sizes[d] * layout.strides[i][d];
      }
    }
  }
}

template <typename T>
const T* as(const void* pointer) {
  return static_cast<const T*>(pointer);
}

}  // namespace

CUDA_EXT_EVERY_CPU void add(DType dtype, const void* a, const void* b, void* out, int64_t begin,
                            int64_t end) {
  with_element_type(
      dtype, [=](auto element) __attribute__((always_inline)) {
        using T = decltype(element);
        add_row(as<T>(a) + begin, 1, as<T>(b) + begin, 1, static_cast<T*>(out) + begin,
                end - begin);
      });
}

CUDA_EXT_EVERY_CPU void cust_add(DType dtype, const void* x, Scalar value, void* out, int64_t begin,
                                 int64_t end) {
  with_element_type(
      dtype, [=](auto element) __attribute__((always_inline)) {
        using T = decltype(element);
        cust_add_row(as<T>(x) + begin, 1, rounded_scalar<T>(value), static_cast<T*>(out) + begin,
                     end - begin);
      });
}

CUDA_EXT_EVERY_CPU void strided_add(DType dtype, const void* a, const void* b, void* out,
                                    const Layout& layout, int64_t begin, int64_t end) {
  with_element_type(
      dtype, [&](auto element) __attribute__((always_inline)) {
        using T = decltype(element);
        for_each_row(layout, begin, end,
                     [&](int64_t at_a, int64_t at_b, int64_t position, int64_t n) {
                       add_row(as<T>(a) + at_a, layout.strides[0][0], as<T>(b) + at_b,
                               layout.strides[1][0], static_cast<T*>(out) + position, n);
                     });
      });
}

CUDA_EXT_EVERY_CPU void strided_cust_add(DType dtype, const void* x, Scalar value, void* out,
                                         const Layout& layout, int64_t begin, int64_t end) {
  with_element_type(
      dtype, [&](auto element) __attribute__((always_inline)) {
        using T = decltype(element);
        for_each_row(layout, begin, end, [&](int64_t at, int64_t, int64_t position, int64_t n) {
          cust_add_row(as<T>(x) + at, layout.strides[0][0], rounded_scalar<T>(value),
                       static_cast<T*>(out) + position, n);
        });
      });
}

}  // namespace cuda_ext::cpu
