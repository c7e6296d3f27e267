// SPDX-License-Identifier: MIT
// The mask is a hash of the index in lanes of 32 bits; the seed enters as two keys, so that two
// seeds give neither shifted nor permuted masks of each other.
#include "mpssm/kernels/dropout.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mpssm/kernels/dropout.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace mpssm::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// What is the same for 2^32 numbers.
struct Mask {
  std::uint32_t first_key;
  std::uint32_t second_key;
  std::uint32_t threshold;  // hashes below it are dropped
};

/// The step of splitmix64 (S. Vigna): a bijection of 64 bits that flips half of them.
HWY_INLINE std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// The three rounds of triple32 (C. Wellons) with a key before each of the first two; two rounds
/// are measurably correlated at distances of powers of two. Only a comparison follows, so the last
/// xor-shift, which leaves the high bits, is left out.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V hash(D d, V index, const Mask& mask) {
  V h = hn::Xor(index, hn::Set(d, mask.first_key));
  h = hn::Xor(h, hn::ShiftRight<17>(h));
  h = hn::Mul(h, hn::Set(d, 0xed5ad4bbu));
  h = hn::Xor(h, hn::Set(d, mask.second_key));
  h = hn::Xor(h, hn::ShiftRight<11>(h));
  h = hn::Mul(h, hn::Set(d, 0xac4c1b51u));
  h = hn::Xor(h, hn::ShiftRight<15>(h));
  return hn::Mul(h, hn::Set(d, 0x31848babu));
}

/// All bits set where the number is dropped, in lanes as wide as T.
template <class D, class M>
HWY_INLINE hn::Vec<D> widen(D d, M dropped) {
  const hn::RebindToSigned<D> wide;
  const hn::Rebind<std::int32_t, D> narrow;
  const hn::Rebind<std::uint32_t, D> bits;
  const auto lanes = hn::BitCast(narrow, hn::VecFromMask(bits, dropped));
  if constexpr (sizeof(hn::TFromD<D>) == sizeof(float)) {
    return hn::BitCast(d, lanes);
  } else {
    return hn::BitCast(d, hn::PromoteTo(wide, lanes));
  }
}

/// `index`: of the numbers, one in each lane.
template <class D, class T, class V>
HWY_INLINE void drop(D d, const T* x, T* y, V index, const Mask& mask, T scale) {
  const hn::Rebind<std::uint32_t, D> bits;
  const auto dropped = hn::Lt(hash(bits, index, mask), hn::Set(bits, mask.threshold));
  const auto value = hn::Mul(hn::LoadU(d, x), hn::Set(d, scale));
  hn::StoreU(hn::AndNot(widen(d, dropped), value), d, y);
}

/// `count` numbers whose indices share the high half; `index` is the low half of the first.
template <class T>
HWY_INLINE void drop_block(const T* x, T* y, std::int64_t count, std::uint32_t index,
                           const Mask& mask, T scale) {
  const hn::ScalableTag<T> d;
  const hn::CappedTag<T, 1> one;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  // Counted on, because lanes that count are made one by one, through memory.
  const hn::Rebind<std::uint32_t, decltype(d)> bits;
  const auto step = hn::Set(bits, static_cast<std::uint32_t>(lanes));
  auto indices = hn::Iota(bits, index);
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    drop(d, x + i, y + i, indices, mask, scale);
    indices = hn::Add(indices, step);
  }
  const hn::Rebind<std::uint32_t, decltype(one)> bit;
  for (; i < count; ++i) {
    drop(one, x + i, y + i, hn::Set(bit, index + static_cast<std::uint32_t>(i)), mask, scale);
  }
}

template <class T>
HWY_INLINE void drop_range(const T* x, T* y, std::int64_t count, std::uint64_t first,
                           std::uint64_t seed, double probability) {
  constexpr double kHashes = 4294967296.0;
  const double threshold = std::round(probability * kHashes);
  if (threshold >= kHashes) {  // all dropped; does not fit 32 bits
    std::fill(y, y + count, T{0});
    return;
  }
  const T scale = static_cast<T>(1.0 / (1.0 - probability));
  while (count > 0) {
    const std::uint64_t high = first >> 32;
    const std::uint64_t left = ((high + 1) << 32) - first;  // that share the high half
    const std::int64_t some = static_cast<std::uint64_t>(count) < left ? count : left;
    const std::uint64_t keys = mix(mix(seed) ^ high);
    const Mask mask{static_cast<std::uint32_t>(keys), static_cast<std::uint32_t>(keys >> 32),
                    static_cast<std::uint32_t>(threshold)};
    drop_block(x, y, some, static_cast<std::uint32_t>(first), mask, scale);
    x += some;
    y += some;
    count -= some;
    first += static_cast<std::uint64_t>(some);
  }
}

#define MPSSM_DEFINE(T, Name)                                                   \
  void Dropout##Name(const T* x, T* y, std::int64_t count, std::uint64_t first, \
                     std::uint64_t seed, double probability) {                  \
    drop_range(x, y, count, first, seed, probability);                          \
  }
MPSSM_DEFINE(float, Float)
MPSSM_DEFINE(double, Double)
#undef MPSSM_DEFINE

}  // namespace mpssm::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mpssm::kernels {

HWY_EXPORT(DropoutFloat);
HWY_EXPORT(DropoutDouble);

template <>
void dropout<float>(const float* x, float* y, std::int64_t count, std::uint64_t first,
                    std::uint64_t seed, double probability) noexcept {
  HWY_DYNAMIC_DISPATCH(DropoutFloat)(x, y, count, first, seed, probability);
}
template <>
void dropout<double>(const double* x, double* y, std::int64_t count, std::uint64_t first,
                     std::uint64_t seed, double probability) noexcept {
  HWY_DYNAMIC_DISPATCH(DropoutDouble)(x, y, count, first, seed, probability);
}

}  // namespace mpssm::kernels
#endif  // HWY_ONCE
