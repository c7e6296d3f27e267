// SPDX-License-Identifier: MIT
// bfloat16, the upper half of a float: its range with 8 significant bits. Numbers are kept and
// multiplied so; sums are floats.
#pragma once

#include <bit>
#include <cstdint>

namespace mpssm::kernels {

struct Bf16 {
  std::uint16_t bits;
};

inline float to_float(Bf16 x) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16);
}

/// The nearest one, of two the even one. NaN stays NaN, what is too large becomes infinite, a
/// subnormal float becomes zero with its sign: as the instructions of AVX-512 BF16 have it, so that
/// every machine gives the same bits.
inline Bf16 to_bf16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t size = bits & 0x7fffffffu;
  if (size > 0x7f800000u) return {static_cast<std::uint16_t>(bits >> 16 | 0x40u)};
  if (size < 0x00800000u) return {static_cast<std::uint16_t>(bits >> 16 & 0x8000u)};
  return {static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16)};
}

/// out[i] = to_bf16(x[i]).
void round_numbers(const float* x, std::int64_t count, Bf16* out) noexcept;

/// out[i] = to_float(x[i]).
void expand_numbers(const Bf16* x, std::int64_t count, float* out) noexcept;

/// True if the products of matmul_bf16.h run on instructions of their own (AVX-512 BF16) rather
/// than on those for floats. The numbers are the same.
bool has_bf16_instructions() noexcept;

}  // namespace mpssm::kernels
