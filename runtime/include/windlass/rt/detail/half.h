// Conversions of the 16-bit floating-point types, rounding to nearest even. Devices have instructions for them, with
// the same results but for the bits of a NaN.
#ifndef WINDLASS_RT_DETAIL_HALF_H
#define WINDLASS_RT_DETAIL_HALF_H

#include "windlass/rt/detail/function.h"

#include <cstdint>
#include <cstring>

namespace windlass::rt::detail {

WINDLASS_FN float float_from_bits(std::uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof(x));
  return x;
}
WINDLASS_FN std::uint32_t bits_from_float(float x) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  return bits;
}

struct bf16 {
  std::uint16_t bits;
  bf16() = default;
  WINDLASS_FN explicit bf16(float x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
#else
    const std::uint32_t b = bits_from_float(x);
    const bool is_nan = (b & 0x7fffffffu) > 0x7f800000u;
    bits = static_cast<std::uint16_t>(is_nan ? (b >> 16) | 0x40u : (b + 0x7fffu + ((b >> 16) & 1u)) >> 16);
#endif
  }
  WINDLASS_FN explicit operator float() const { return float_from_bits(std::uint32_t(bits) << 16); }
};

struct f16 {
  std::uint16_t bits;
  f16() = default;
  WINDLASS_FN explicit f16(float x) {
#if defined(__CUDA_ARCH__)
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
#else
    const std::uint32_t b = bits_from_float(x);
    const std::uint32_t sign = (b >> 16) & 0x8000u;
    const std::uint32_t magnitude = b & 0x7fffffffu;
    std::uint32_t half;
    if (magnitude > 0x7f800000u)
      half = 0x7e00u;
    else if (magnitude >= 0x477ff000u) // rounds to 2^16 or is larger
      half = 0x7c00u;
    else if (magnitude >= 0x38800000u)
      half = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
    else // below 2^-14: adding 0.5 puts the last kept bit, 2^-24, at the end of the sum's mantissa and rounds there
      half = bits_from_float(float_from_bits(magnitude) + 0.5f) - bits_from_float(0.5f);
    bits = static_cast<std::uint16_t>(sign | half);
#endif
  }
  WINDLASS_FN explicit operator float() const {
#if defined(__CUDA_ARCH__)
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
    return x;
#else
    const std::uint32_t sign = (bits & 0x8000u) << 16, magnitude = bits & 0x7fffu;
    std::uint32_t b;
    if (magnitude >= 0x7c00u)
      b = 0x7f800000u | (magnitude & 0x3ffu) << 13;
    else if (magnitude >= 0x400u)
      b = (magnitude << 13) + 0x38000000u;
    else
      b = bits_from_float(static_cast<float>(magnitude) * 5.9604644775390625e-8f);
    return float_from_bits(sign | b);
#endif
  }
};

} // namespace windlass::rt::detail

#endif
