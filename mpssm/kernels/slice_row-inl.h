// SPDX-License-Identifier: MIT
// A row of a slice (recurrence.h) in vectors. Included once for every instruction set.
#include <cstdint>
#include <type_traits>

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "mpssm/kernels/recurrence.h"

#if defined(MPSSM_KERNELS_SLICE_ROW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MPSSM_KERNELS_SLICE_ROW_INL_H_
#undef MPSSM_KERNELS_SLICE_ROW_INL_H_
#else
#define MPSSM_KERNELS_SLICE_ROW_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace mpssm::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// A row of `kLanes` numbers as vectors of one width.
template <typename T, std::int64_t kLanes>
struct SliceRow {
  using D = hn::CappedTag<T, (kLanes & -kLanes)>;  // the largest power of two that divides them
  using V = hn::Vec<D>;
  static constexpr std::int64_t kWidth = static_cast<std::int64_t>(hn::MaxLanes(D()));
  static constexpr int kVectors = static_cast<int>(kLanes / kWidth);
};

/// Vector `v` of a row with the numbers of each pair (re, im) swapped.
template <typename T, std::int64_t kLanes>
HWY_INLINE typename SliceRow<T, kLanes>::V swapped(const typename SliceRow<T, kLanes>::V* row,
                                                   int v) {
  const typename SliceRow<T, kLanes>::D d;
  if constexpr (SliceRow<T, kLanes>::kWidth == 1)
    return row[v ^ 1];
  else
    return hn::Reverse2(d, row[v]);
}

/// A complex factor for every pair (re, im) of a row: f x = re x + im swapped(x), signs in im.
template <typename T, std::int64_t kLanes>
struct SliceRowFactors {
  using R = SliceRow<T, kLanes>;
  HWY_ALIGN T re[kLanes];
  HWY_ALIGN T im[kLanes];

  SliceRowFactors(const T* from_re, const T* from_im, bool conjugate) {
    for (std::int64_t c = 0; c < kLanes / 2; ++c) {
      re[2 * c] = re[2 * c + 1] = from_re[c];
      im[2 * c] = conjugate ? from_im[c] : -from_im[c];
      im[2 * c + 1] = -im[2 * c];
    }
  }
  /// Vector `v` of the product with a row.
  HWY_INLINE typename R::V times(const typename R::V* row, int v) const {
    const typename R::D d;
    return hn::MulAdd(swapped<T, kLanes>(row, v), hn::Load(d, im + v * R::kWidth),
                      hn::Mul(row[v], hn::Load(d, re + v * R::kWidth)));
  }
};

/// Asks the cache for a row.
template <typename T, std::int64_t kLanes>
HWY_INLINE void prefetch_row(const T* row) {
  constexpr auto kLine = static_cast<std::int64_t>(64 / sizeof(T));
  for (std::int64_t line = 0; line < kLanes; line += kLine) hwy::Prefetch(row + line);
}

/// run() with the number of lanes as a constant, lanes() of its argument.
template <typename T, std::int64_t kLanes = kWidestSliceLanes<T>, typename Run>
HWY_INLINE void with_lanes(std::int64_t lanes, const Run& run) {
  if (lanes == kLanes) return run(std::integral_constant<std::int64_t, kLanes>());
  if constexpr (kLanes > kMinSliceLanes) {
    with_lanes<T, kLanes - kMinSliceLanes>(lanes, run);
  }
}

}  // namespace mpssm::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
