// SPDX-License-Identifier: MIT
// A step reads every entry's source row (lanes numbers) and writes one row per node; at 128 bytes a
// row that is two cache lines per entry and 2 flops per number: bound by the shared cache. Rows
// ahead are prefetched, because the columns of a graph are as good as random and the hardware
// cannot guess.
#include "mpssm/kernels/recurrence.h"

#include <algorithm>

#include "mpssm/kernels/entries_ahead.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mpssm/kernels/recurrence.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace mpssm::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// How many entries ahead of the one in use a source row is asked for: about as many lines as one
// core can have in flight.
inline constexpr std::int64_t kPrefetchEntries = 16;

/// A row of `kLanes` numbers as vectors that never straddle its two halves.
template <typename T, std::int64_t kLanes>
struct Row {
  using D = hn::CappedTag<T, kLanes / 2>;
  using V = hn::Vec<D>;
  static constexpr std::int64_t kWidth = static_cast<std::int64_t>(hn::MaxLanes(D()));
  static constexpr int kHalf = static_cast<int>(kLanes / 2 / kWidth);  // vectors in a half
  static constexpr int kAll = 2 * kHalf;
};

/// sum[] = row `row` of A x; x packed. kNearEnd: entries ahead may lie behind the last one.
template <typename T, std::int64_t kLanes, bool kNearEnd>
HWY_INLINE void gather(const CsrView<T>& a, const T* HWY_RESTRICT x, std::int64_t row,
                       typename Row<T, kLanes>::V* sum) {
  using R = Row<T, kLanes>;
  const typename R::D d;
  for (int v = 0; v < R::kAll; ++v) sum[v] = hn::Zero(d);
  for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1]; ++e) {
    std::int64_t later = e + kPrefetchEntries;
    if constexpr (kNearEnd) later = std::min(later, a.row_ptr[a.num_rows] - 1);
    const T* ahead = x + a.col[later] * kLanes;
    hwy::Prefetch(ahead);
    if constexpr (kLanes * sizeof(T) > 64) hwy::Prefetch(ahead + 64 / sizeof(T));
    const T* HWY_RESTRICT source = x + a.col[e] * kLanes;
    const auto entry = hn::Set(d, a.value[e]);
    for (int v = 0; v < R::kAll; ++v) {
      sum[v] = hn::MulAdd(entry, hn::LoadU(d, source + v * R::kWidth), sum[v]);
    }
  }
}

template <typename T, std::int64_t kLanes, bool kScaled, bool kNearEnd>
HWY_INLINE void step_rows(const SliceStep<T>& p, std::int64_t row_begin, std::int64_t row_end) {
  using R = Row<T, kLanes>;
  const typename R::D d;
  // A copy, because a store may for all the compiler knows write to p.
  const CsrView<T> a = p.a;
  for (std::int64_t row = row_begin; row < row_end; ++row) {
    typename R::V sum[R::kAll];
    gather<T, kLanes, kNearEnd>(a, p.x, row, sum);
    if constexpr (kScaled) {
      for (int v = 0; v < R::kHalf; ++v) {
        const auto re = hn::LoadU(d, p.sigma_re + v * R::kWidth);
        const auto im = hn::LoadU(d, p.sigma_im + v * R::kWidth);
        const auto sum_re = sum[v];
        const auto sum_im = sum[v + R::kHalf];
        sum[v] = hn::NegMulAdd(sum_im, im, hn::Mul(sum_re, re));
        sum[v + R::kHalf] = hn::MulAdd(sum_re, im, hn::Mul(sum_im, re));
      }
    }
    T* HWY_RESTRICT y = p.y + row * kLanes;
    if (p.add != nullptr) {
      const T* HWY_RESTRICT add = p.add + row * kLanes;
      for (int v = 0; v < R::kAll; ++v) {
        hn::StoreU(hn::Add(sum[v], hn::LoadU(d, add + v * R::kWidth)), d, y + v * R::kWidth);
      }
    } else {
      for (int v = 0; v < R::kAll; ++v) hn::StoreU(sum[v], d, y + v * R::kWidth);
    }
  }
}

/// kGrad: with the inner product with `other`.
template <typename T, std::int64_t kLanes, bool kGrad>
HWY_INLINE void adjoint_rows(const SliceAdjointStep<T>& p) {
  using R = Row<T, kLanes>;
  const typename R::D d;
  const CsrView<T> a = p.a_transposed;
  const std::int64_t rows = a.num_rows;
  const std::int64_t near_end = rows_before_end(a, kPrefetchEntries, 0, rows);
  // Inner products are summed in T over a block of rows and then in double.
  constexpr std::int64_t kBlockRows = 256;
  for (std::int64_t begin = 0; begin < rows; begin += kBlockRows) {
    typename R::V grad_re[R::kHalf];
    typename R::V grad_im[R::kHalf];
    for (int v = 0; v < R::kHalf; ++v) grad_re[v] = grad_im[v] = hn::Zero(d);
    for (std::int64_t row = begin; row < std::min(rows, begin + kBlockRows); ++row) {
      typename R::V q[R::kAll];
      if (row < near_end) {
        gather<T, kLanes, false>(a, p.p, row, q);
      } else {
        gather<T, kLanes, true>(a, p.p, row, q);
      }
      const T* HWY_RESTRICT other = p.other + (kGrad ? row * kLanes : 0);
      T* HWY_RESTRICT p_next = p.p_next + row * kLanes;
      for (int v = 0; v < R::kHalf; ++v) {
        const std::int64_t at_re = v * R::kWidth;
        const std::int64_t at_im = at_re + kLanes / 2;
        const auto q_re = q[v];
        const auto q_im = q[v + R::kHalf];
        if constexpr (kGrad) {
          const auto other_re = hn::LoadU(d, other + at_re);
          const auto other_im = hn::LoadU(d, other + at_im);
          grad_re[v] = hn::MulAdd(q_re, other_re, hn::MulAdd(q_im, other_im, grad_re[v]));
          grad_im[v] = hn::MulAdd(q_im, other_re, hn::NegMulAdd(q_re, other_im, grad_im[v]));
        }
        const auto re = hn::LoadU(d, p.sigma_re + at_re);
        const auto im = hn::LoadU(d, p.sigma_im + at_re);
        auto next_re = hn::MulAdd(q_im, im, hn::Mul(q_re, re));
        auto next_im = hn::NegMulAdd(q_re, im, hn::Mul(q_im, re));
        if (p.add != nullptr) {
          next_re = hn::Add(next_re, hn::LoadU(d, p.add + row * kLanes + at_re));
          next_im = hn::Add(next_im, hn::LoadU(d, p.add + row * kLanes + at_im));
        }
        hn::StoreU(next_re, d, p_next + at_re);
        hn::StoreU(next_im, d, p_next + at_im);
        if (p.total != nullptr) {
          T* HWY_RESTRICT total = p.total + row * kLanes;
          hn::StoreU(hn::Add(next_re, hn::LoadU(d, total + at_re)), d, total + at_re);
          hn::StoreU(hn::Add(next_im, hn::LoadU(d, total + at_im)), d, total + at_im);
        }
      }
    }
    if constexpr (kGrad) {
      HWY_ALIGN T sums[kLanes];
      for (int v = 0; v < R::kHalf; ++v) {
        hn::StoreU(grad_re[v], d, sums + v * R::kWidth);
        hn::StoreU(grad_im[v], d, sums + kLanes / 2 + v * R::kWidth);
      }
      for (std::int64_t c = 0; c < kLanes / 2; ++c) {
        p.grad_re[c] += p.weight * static_cast<double>(sums[c]);
        p.grad_im[c] += p.weight * static_cast<double>(sums[kLanes / 2 + c]);
      }
    }
  }
}

template <typename T, std::int64_t kLanes, bool kScaled>
HWY_INLINE void step_all(const SliceStep<T>& p) {
  const std::int64_t rows = p.a.num_rows;
  const std::int64_t near_end = rows_before_end(p.a, kPrefetchEntries, 0, rows);
  step_rows<T, kLanes, kScaled, false>(p, 0, near_end);
  step_rows<T, kLanes, kScaled, true>(p, near_end, rows);
}

template <typename T, std::int64_t kLanes>
HWY_INLINE void step_lanes(const SliceStep<T>& p) {
  if (p.sigma_re == nullptr) {
    step_all<T, kLanes, false>(p);
  } else {
    step_all<T, kLanes, true>(p);
  }
}

template <typename T, std::int64_t kLanes>
HWY_INLINE void adjoint_lanes(const SliceAdjointStep<T>& p) {
  if (p.other == nullptr) {
    adjoint_rows<T, kLanes, false>(p);
  } else {
    adjoint_rows<T, kLanes, true>(p);
  }
}

/// Where row `row` of a copy comes from, and a word to the cache about a later one: rows of a few
/// hundred channels leave a page after some steps, and what guesses for the hardware does, too.
template <typename T>
HWY_INLINE const T* source_row(const T* source, std::int64_t stride, std::int64_t rows,
                               const std::int32_t* order, std::int64_t row) {
  const std::int64_t later = std::min(row + kPrefetchEntries, rows - 1);
  const T* ahead = source + (order == nullptr ? later : order[later]) * stride;
  hwy::Prefetch(ahead);
  hwy::Prefetch(ahead + 64 / sizeof(T));
  return source + (order == nullptr ? row : order[row]) * stride;
}

/// The same for row `row` of a copy's target.
template <typename T>
HWY_INLINE T* target_row(T* target, std::int64_t stride, std::int64_t rows, std::int64_t row) {
  const T* ahead = target + std::min(row + kPrefetchEntries, rows - 1) * stride;
  __builtin_prefetch(ahead, 1);
  __builtin_prefetch(ahead + 64 / sizeof(T), 1);
  return target + row * stride;
}

template <typename T, std::int64_t kLanes>
HWY_INLINE void pack_full(const T* source, std::int64_t stride, std::int64_t rows, T* slice,
                          const std::int32_t* order) {
  using R = Row<T, kLanes>;
  const typename R::D d;
  for (std::int64_t row = 0; row < rows; ++row) {
    const T* from = source_row(source, stride, rows, order, row);
    for (int v = 0; v < R::kHalf; ++v) {
      typename R::V re;
      typename R::V im;
      hn::LoadInterleaved2(d, from + 2 * v * R::kWidth, re, im);
      hn::StoreU(re, d, slice + row * kLanes + v * R::kWidth);
      hn::StoreU(im, d, slice + row * kLanes + kLanes / 2 + v * R::kWidth);
    }
  }
}

template <typename T, std::int64_t kLanes>
HWY_INLINE void unpack_full(const T* slice, std::int64_t rows, T* target, std::int64_t stride,
                            const std::int32_t* order) {
  using R = Row<T, kLanes>;
  const typename R::D d;
  for (std::int64_t row = 0; row < rows; ++row) {
    const T* from = source_row(slice, kLanes, rows, order, row);
    T* to = target_row(target, stride, rows, row);
    for (int v = 0; v < R::kHalf; ++v) {
      const auto re = hn::LoadU(d, from + v * R::kWidth);
      const auto im = hn::LoadU(d, from + kLanes / 2 + v * R::kWidth);
      hn::StoreInterleaved2(re, im, d, to + 2 * v * R::kWidth);
    }
  }
}

// One exported function per type; the number of lanes becomes a constant here.
#define MPSSM_DEFINE_BY_LANES(T, Name)                                                             \
  void Step##Name(const SliceStep<T>& p) {                                                         \
    if (p.lanes == 8) return step_lanes<T, 8>(p);                                                  \
    if (p.lanes == 16) return step_lanes<T, 16>(p);                                                \
    if constexpr (kMaxSliceLanes<T> == 32) step_lanes<T, 32>(p);                                   \
  }                                                                                                \
  void Adjoint##Name(const SliceAdjointStep<T>& p) {                                               \
    if (p.lanes == 8) return adjoint_lanes<T, 8>(p);                                               \
    if (p.lanes == 16) return adjoint_lanes<T, 16>(p);                                             \
    if constexpr (kMaxSliceLanes<T> == 32) adjoint_lanes<T, 32>(p);                                \
  }                                                                                                \
  void Pack##Name(const T* source, std::int64_t stride, std::int64_t rows, std::int64_t lanes,     \
                  T* slice, const std::int32_t* order) {                                           \
    if (lanes == 8) return pack_full<T, 8>(source, stride, rows, slice, order);                    \
    if (lanes == 16) return pack_full<T, 16>(source, stride, rows, slice, order);                  \
    if constexpr (kMaxSliceLanes<T> == 32) pack_full<T, 32>(source, stride, rows, slice, order);   \
  }                                                                                                \
  void Unpack##Name(const T* slice, std::int64_t rows, std::int64_t lanes, T* target,              \
                    std::int64_t stride, const std::int32_t* order) {                              \
    if (lanes == 8) return unpack_full<T, 8>(slice, rows, target, stride, order);                  \
    if (lanes == 16) return unpack_full<T, 16>(slice, rows, target, stride, order);                \
    if constexpr (kMaxSliceLanes<T> == 32) unpack_full<T, 32>(slice, rows, target, stride, order); \
  }
MPSSM_DEFINE_BY_LANES(float, Float)
MPSSM_DEFINE_BY_LANES(double, Double)
#undef MPSSM_DEFINE_BY_LANES

}  // namespace mpssm::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mpssm::kernels {

HWY_EXPORT(StepFloat);
HWY_EXPORT(StepDouble);
HWY_EXPORT(AdjointFloat);
HWY_EXPORT(AdjointDouble);
HWY_EXPORT(PackFloat);
HWY_EXPORT(PackDouble);
HWY_EXPORT(UnpackFloat);
HWY_EXPORT(UnpackDouble);

void slice_step(const SliceStep<float>& step) noexcept { HWY_DYNAMIC_DISPATCH(StepFloat)(step); }
void slice_step(const SliceStep<double>& step) noexcept { HWY_DYNAMIC_DISPATCH(StepDouble)(step); }
void slice_adjoint_step(const SliceAdjointStep<float>& step) noexcept {
  HWY_DYNAMIC_DISPATCH(AdjointFloat)(step);
}
void slice_adjoint_step(const SliceAdjointStep<double>& step) noexcept {
  HWY_DYNAMIC_DISPATCH(AdjointDouble)(step);
}

namespace {

/// Where number j of a row stands in a slice.
std::int64_t slot(SliceLayout layout, std::int64_t j, std::int64_t lanes) {
  return layout == SliceLayout::kReal ? j : j / 2 + (j % 2) * (lanes / 2);
}

}  // namespace

template <typename T>
void pack_slice(SliceLayout layout, const T* source, std::int64_t stride, std::int64_t rows,
                std::int64_t width, std::int64_t lanes, T* slice,
                const std::int32_t* order) noexcept {
  if (width == lanes && layout == SliceLayout::kComplex) {
    if constexpr (sizeof(T) == sizeof(float)) {
      HWY_DYNAMIC_DISPATCH(PackFloat)(source, stride, rows, lanes, slice, order);
    } else {
      HWY_DYNAMIC_DISPATCH(PackDouble)(source, stride, rows, lanes, slice, order);
    }
    return;
  }
  for (std::int64_t row = 0; row < rows; ++row) {
    T* to = slice + row * lanes;
    const T* from = HWY_STATIC_DISPATCH(source_row)(source, stride, rows, order, row);
    if (width < lanes) std::fill(to, to + lanes, T{0});
    if (layout == SliceLayout::kReal) {
      std::copy(from, from + width, to);
    } else {
      for (std::int64_t j = 0; j < width; ++j) to[slot(layout, j, lanes)] = from[j];
    }
  }
}

template <typename T>
void unpack_slice(SliceLayout layout, const T* slice, std::int64_t rows, std::int64_t width,
                  std::int64_t lanes, T* target, std::int64_t stride,
                  const std::int32_t* order) noexcept {
  if (width == lanes && layout == SliceLayout::kComplex) {
    if constexpr (sizeof(T) == sizeof(float)) {
      HWY_DYNAMIC_DISPATCH(UnpackFloat)(slice, rows, lanes, target, stride, order);
    } else {
      HWY_DYNAMIC_DISPATCH(UnpackDouble)(slice, rows, lanes, target, stride, order);
    }
    return;
  }
  for (std::int64_t row = 0; row < rows; ++row) {
    const T* from = HWY_STATIC_DISPATCH(source_row)(slice, lanes, rows, order, row);
    T* to = target + row * stride;
    if (layout == SliceLayout::kReal) {
      std::copy(from, from + width, to);
    } else {
      for (std::int64_t j = 0; j < width; ++j) to[j] = from[slot(layout, j, lanes)];
    }
  }
}

#define MPSSM_INSTANTIATE(T)                                                                     \
  template void pack_slice<T>(SliceLayout, const T*, std::int64_t, std::int64_t, std::int64_t,   \
                              std::int64_t, T*, const std::int32_t*) noexcept;                   \
  template void unpack_slice<T>(SliceLayout, const T*, std::int64_t, std::int64_t, std::int64_t, \
                                T*, std::int64_t, const std::int32_t*) noexcept;
MPSSM_INSTANTIATE(float)
MPSSM_INSTANTIATE(double)
#undef MPSSM_INSTANTIATE

}  // namespace mpssm::kernels
#endif  // HWY_ONCE
