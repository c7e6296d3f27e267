// SPDX-License-Identifier: MIT
// Sixteen numbers of a row in vectors, fewer where the row ends. Included once for every
// instruction set.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <hwy/highway.h>

#include "mpssm/kernels/matmul.h"

#if defined(MPSSM_KERNELS_PANEL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MPSSM_KERNELS_PANEL_INL_H_
#undef MPSSM_KERNELS_PANEL_INL_H_
#else
#define MPSSM_KERNELS_PANEL_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace mpssm::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <typename T>
struct Panel {
  using D = hn::CappedTag<T, kPanelColumns>;
  using V = hn::Vec<D>;
  static constexpr std::int64_t kWidth = static_cast<std::int64_t>(hn::MaxLanes(D()));
  static constexpr int kVectors = static_cast<int>(kPanelColumns / kWidth);

  /// The first `count` numbers of a vector.
  HWY_INLINE static hn::Mask<D> first(std::int64_t count) {
    return hn::FirstN(D(), static_cast<std::size_t>(count));
  }
  /// The first `count` numbers as they are, zeros behind them.
  HWY_INLINE static V within(V numbers, std::int64_t count) {
    return count == kWidth ? numbers : hn::IfThenElseZero(first(count), numbers);
  }
  /// `count` numbers, zeros behind them; memory behind them is not touched, nor by store().
  HWY_INLINE static V load(const T* from, std::int64_t count) {
    if (count == kWidth) return hn::LoadU(D(), from);
#if HWY_MEM_OPS_MIGHT_FAULT
    HWY_ALIGN T all[kPanelColumns] = {};
    for (std::int64_t j = 0; j < count; ++j) all[j] = from[j];
    return hn::Load(D(), all);
#else
    return hn::MaskedLoad(first(count), D(), from);
#endif
  }
  HWY_INLINE static void store(V numbers, T* to, std::int64_t count) {
    if (count == kWidth) return hn::StoreU(numbers, D(), to);
#if HWY_MEM_OPS_MIGHT_FAULT
    HWY_ALIGN T all[kPanelColumns];
    hn::Store(numbers, D(), all);
    for (std::int64_t j = 0; j < count; ++j) to[j] = all[j];
#else
    hn::BlendedStore(numbers, first(count), D(), to);
#endif
  }

  /// visit(v, j, count) for every vector of a row: `count` numbers from j on, v'th of a panel.
  template <typename Visit>
  HWY_INLINE static void visit_row(std::int64_t width, const Visit& visit) {
    std::int64_t j = 0;
    for (; j + kPanelColumns <= width; j += kPanelColumns) {
      for (int v = 0; v < kVectors; ++v) visit(v, j + v * kWidth, kWidth);
    }
    for (int v = 0; j < width; j += kWidth, ++v) visit(v, j, std::min(kWidth, width - j));
  }
};

}  // namespace mpssm::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
