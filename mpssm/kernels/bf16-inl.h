// SPDX-License-Identifier: MIT
// bfloat16 in vectors of 32-bit words, two numbers a word: the first in the lower half ("even"),
// the second in the upper ("odd"). Included once for every instruction set.
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

HWY_BEFORE_NAMESPACE();
namespace mpssm::kernels::HWY_NAMESPACE {
namespace bf16 {
namespace hn = hwy::HWY_NAMESPACE;

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
