// float16 and bfloat16 on the CPU, converted without branches, so that loops over them vectorise.
//
// No conversion depends on the value of a float32 subnormal, so torch.set_flush_denormal() does not
// change the results.
#pragma once

#include <cstring>

#include "element.h"

#define OPWRIGHT_INLINE inline __attribute__((always_inline))

namespace opwright::cpu {

template <typename To, typename From>
OPWRIGHT_INLINE To bit_cast(From from) {
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

template <typename T>
OPWRIGHT_INLINE T load(T element) {
  return element;
}

OPWRIGHT_INLINE float load(BFloat16 element) {
  return bit_cast<float>(static_cast<uint32_t>(element.bits) << 16);
}

// An addition moves a normal number's exponent; a second one moves that of an infinity or NaN the
// rest of the way. A subnormal number is its bits, as an integer, times float16's smallest step.
OPWRIGHT_INLINE float load(Half element) {
  const uint32_t sign = static_cast<uint32_t>(element.bits & 0x8000) << 16;
  const uint32_t magnitude = element.bits & 0x7fff;
  const uint32_t normal = (magnitude << 13) + (112u << 23);
  const uint32_t special = magnitude >= 0x7c00u ? 112u << 23 : 0u;
  const uint32_t subnormal =
      bit_cast<uint32_t>(static_cast<float>(static_cast<int32_t>(magnitude)) * 0x1p-24f);
  return bit_cast<float>((magnitude < 0x400u ? subnormal : normal + special) | sign);
}

template <typename T>
struct Store {
  static OPWRIGHT_INLINE T from(Compute<T> value) { return value; }
};

// Rounds to nearest even by adding just under half of the last kept bit, and one more if that bit
// is set.
template <>
struct Store<BFloat16> {
  static OPWRIGHT_INLINE BFloat16 from(float value) {
    const uint32_t bits = bit_cast<uint32_t>(value);
    const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1)) >> 16;
    return {static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? 0x7fc0u : rounded)};
  }
};

// Normal results are rounded as for bfloat16. Subnormal ones get their bits by adding 0.5, whose
// last bit has the value of float16's smallest step, so that the addition itself rounds.
template <>
struct Store<Half> {
  static OPWRIGHT_INLINE Half from(float value) {
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

}  // namespace opwright::cpu
