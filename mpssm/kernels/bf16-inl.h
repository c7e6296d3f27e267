// SPDX-License-Identifier: MIT
// bfloat16 in vectors of 32-bit words, two numbers a word: the first in the lower half ("even"),
// the second in the upper ("odd"). Included once for every instruction set.
//
// AVX-512 BF16 has instructions that round and multiply such words, which this Highway does not
// know. MPSSM_HAS_BF16_DOT says whether they can be compiled; functions that hold them are marked
// MPSSM_BF16_DOT; bf16::dot_is_there() says whether the CPU has them.
#include <cstdint>
#include <cstring>

#include <hwy/highway.h>

#include "mpssm/kernels/bf16.h"

#if defined(MPSSM_KERNELS_BF16_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MPSSM_KERNELS_BF16_INL_H_
#undef MPSSM_KERNELS_BF16_INL_H_
#else
#define MPSSM_KERNELS_BF16_INL_H_
#endif

#undef MPSSM_BF16_DOT
#undef MPSSM_HAS_BF16_DOT
#if HWY_ARCH_X86_64 && (HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL)
#include <immintrin.h>
#define MPSSM_BF16_DOT __attribute__((target("avx512bf16")))
#define MPSSM_HAS_BF16_DOT 1
#else
#define MPSSM_BF16_DOT
#define MPSSM_HAS_BF16_DOT 0
#endif

HWY_BEFORE_NAMESPACE();
namespace mpssm::kernels::HWY_NAMESPACE {
namespace bf16 {
namespace hn = hwy::HWY_NAMESPACE;

#if MPSSM_HAS_BF16_DOT
inline bool dot_is_there() {
  static const bool there = __builtin_cpu_supports("avx512bf16") != 0;
  return there;
}
#else
inline bool dot_is_there() { return false; }
#endif

template <class D>
using Words = hn::Vec<hn::RebindToUnsigned<D>>;

template <class D>
HWY_INLINE Words<D> load_words(D /*d*/, const Bf16* numbers) {
  const hn::RebindToUnsigned<D> du;
#if HWY_TARGET == HWY_SCALAR  // a plain access, which must not look at numbers as another type
  std::uint32_t word;
  std::memcpy(&word, numbers, sizeof(word));
  return hn::Set(du, word);
#else
  return hn::LoadU(du, reinterpret_cast<const std::uint32_t*>(numbers));
#endif
}
template <class D>
HWY_INLINE void store_words(D /*d*/, Words<D> words, Bf16* numbers) {
#if HWY_TARGET == HWY_SCALAR
  const std::uint32_t word = hn::GetLane(words);
  std::memcpy(numbers, &word, sizeof(word));
#else
  const hn::RebindToUnsigned<D> du;
  hn::StoreU(words, du, reinterpret_cast<std::uint32_t*>(numbers));
#endif
}

template <class D>
HWY_INLINE hn::Vec<D> even_of(D d, Words<D> words) {
  return hn::BitCast(d, hn::ShiftLeft<16>(words));
}
template <class D>
HWY_INLINE hn::Vec<D> odd_of(D d, Words<D> words) {
  const hn::RebindToUnsigned<D> du;
  return hn::BitCast(d, hn::And(words, hn::Set(du, 0xffff0000u)));
}

/// to_bf16() of every lane in the upper half of its word; the lower half holds anything.
template <class D>
HWY_INLINE Words<D> rounded(D /*d*/, hn::Vec<D> x) {
  const hn::RebindToUnsigned<D> du;
  const auto bits = hn::BitCast(du, x);
  const auto is_odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1u));
  auto out = hn::Add(bits, hn::Add(is_odd, hn::Set(du, 0x7fffu)));
  out = hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(x)), hn::Or(bits, hn::Set(du, 0x400000u)), out);
  const auto is_small = hn::Eq(hn::And(bits, hn::Set(du, 0x7f800000u)), hn::Zero(du));
  return hn::IfThenElse(is_small, hn::And(bits, hn::Set(du, 0x80000000u)), out);
}

/// Words of the rounded numbers of two vectors.
template <class D>
HWY_INLINE Words<D> join(D d, hn::Vec<D> even, hn::Vec<D> odd) {
  const hn::RebindToUnsigned<D> du;
  return hn::Or(hn::ShiftRight<16>(rounded(d, even)),
                hn::And(rounded(d, odd), hn::Set(du, 0xffff0000u)));
}

}  // namespace bf16
}  // namespace mpssm::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
