// SPDX-License-Identifier: MIT
// A step reads every entry's source row (lanes numbers) and writes one row per node; at 128 bytes a
// row that is two cache lines per entry and 2 flops per number: bound by the shared cache. Rows
// ahead are prefetched, because the columns of a graph are as good as random and the hardware
// cannot guess.
#include "mpssm/kernels/recurrence.h"

#include <algorithm>
#include <type_traits>

#include "mpssm/kernels/entries_ahead.h"

#ifndef MPSSM_KERNELS_SLICE_COPY_
#define MPSSM_KERNELS_SLICE_COPY_
namespace mpssm::kernels {
namespace {

/// Rows on their way into a slice or out of one.
template <typename T>
struct SliceCopy {
  const T* from;
  std::int64_t from_stride;
  T* to;
  std::int64_t to_stride;
  std::int64_t rows;
  std::int64_t width;
  std::int64_t lanes;
  const std::int32_t* order;  // of the rows of `from`; null: as they come
};

}  // namespace
}  // namespace mpssm::kernels
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mpssm/kernels/recurrence.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "mpssm/kernels/slice_row-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mpssm::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// How many entries ahead of the one in use a source row is asked for: about as many lines as one
// core can have in flight.
inline constexpr std::int64_t kPrefetchEntries = 16;

/// The value of an entry for each lane of a row, if there are several operators. In double, and in
/// scalars: these are not where speed is looked for.
template <typename T, std::int64_t kLanes, bool kSeveral>
struct EntryOfLanes {
  using R = SliceRow<T, kLanes>;
  const T* values;
  std::int64_t operators;
  std::int64_t which[kLanes];

  EntryOfLanes(const CsrView<T>& /*a*/, const LaneOperators<T>& of_lanes)
      : values(of_lanes.values), operators(of_lanes.operators) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) which[lane] = of_lanes.of_lane(lane);
  }
  HWY_INLINE const T* read(std::int64_t e) const { return values + e * operators; }
  HWY_INLINE typename R::V of(const T* entry, int v) const {
    T lanes[R::kWidth];
    for (std::int64_t j = 0; j < R::kWidth; ++j) lanes[j] = entry[which[v * R::kWidth + j]];
    return hn::LoadU(typename R::D(), lanes);
  }
};

/// One operator for all of them.
template <typename T, std::int64_t kLanes>
struct EntryOfLanes<T, kLanes, false> {
  using V = typename SliceRow<T, kLanes>::V;
  const T* value;

  EntryOfLanes(const CsrView<T>& a, const LaneOperators<T>& /*of_lanes*/) : value(a.value) {}
  HWY_INLINE V read(std::int64_t e) const {
    return hn::Set(typename SliceRow<T, kLanes>::D(), value[e]);
  }
  HWY_INLINE V of(V entry, int /*v*/) const { return entry; }
};

#if HWY_TARGET != HWY_SCALAR
/// All values of an entry are in one block of a vector, of which each lane takes its own.
template <std::int64_t kLanes>
struct EntryOfLanes<float, kLanes, true> {
  using R = SliceRow<float, kLanes>;
  using Bytes = hn::Repartition<std::uint8_t, typename R::D>;
  static_assert(kEntryReads * sizeof(float) == 16 && kMostSliceOperators <= kEntryReads);
  const float* values;
  std::int64_t operators;
  hn::Vec<Bytes> own[R::kVectors];

  EntryOfLanes(const CsrView<float>& /*a*/, const LaneOperators<float>& of_lanes)
      : values(of_lanes.values), operators(of_lanes.operators) {
    std::uint8_t bytes[kLanes * sizeof(float)];
    for (std::size_t b = 0; b < sizeof(bytes); ++b) {
      const std::int64_t lane = static_cast<std::int64_t>(b / sizeof(float));
      bytes[b] =
          static_cast<std::uint8_t>(of_lanes.of_lane(lane) * sizeof(float) + b % sizeof(float));
    }
    for (int v = 0; v < R::kVectors; ++v) {
      own[v] = hn::LoadU(Bytes(), bytes + v * R::kWidth * sizeof(float));
    }
  }
  HWY_INLINE typename R::V read(std::int64_t e) const {
    return hn::LoadDup128(typename R::D(), values + e * operators);
  }
  HWY_INLINE typename R::V of(typename R::V entry, int v) const {
    return hn::BitCast(typename R::D(), hn::TableLookupBytes(hn::BitCast(Bytes(), entry), own[v]));
  }
};
#endif

/// run() with whether there are several as a constant.
template <typename T, typename Run>
HWY_INLINE void with_operators(const LaneOperators<T>& of_lanes, const Run& run) {
  if (of_lanes.values == nullptr) return run(std::false_type());
  run(std::true_type());
}

/// sum[] = row `row` of A x; x packed. Rows of x are asked for `ahead` entries before their use.
template <typename T, std::int64_t kLanes, bool kSeveral>
HWY_INLINE void gather(const CsrView<T>& a, const EntryOfLanes<T, kLanes, kSeveral>& lanes,
                       const T* HWY_RESTRICT x, std::int64_t row, std::int64_t ahead,
                       typename SliceRow<T, kLanes>::V* sum) {
  using R = SliceRow<T, kLanes>;
  const typename R::D d;
  for (int v = 0; v < R::kVectors; ++v) sum[v] = hn::Zero(d);
  for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1]; ++e) {
    prefetch_row<T, kLanes>(x + a.col[e + ahead] * kLanes);
    const T* HWY_RESTRICT source = x + a.col[e] * kLanes;
    const auto entry = lanes.read(e);
    for (int v = 0; v < R::kVectors; ++v) {
      sum[v] = hn::MulAdd(lanes.of(entry, v), hn::LoadU(d, source + v * R::kWidth), sum[v]);
    }
  }
}

// Arguments of loops by value: a store may for all the compiler knows write to what is referred to.

template <typename T, std::int64_t kLanes, bool kScaled, bool kSeveral>
HWY_INLINE void step_rows(const SliceStep<T> p, const EntryOfLanes<T, kLanes, kSeveral> lanes,
                          const SliceRowFactors<T, kLanes>* sigma) {
  using R = SliceRow<T, kLanes>;
  const typename R::D d;
  const CsrView<T> a = p.a;
  const std::int64_t end = rows_before_end(a, kPrefetchEntries, 0, a.num_rows);
  std::int64_t ahead = kPrefetchEntries;
  for (std::int64_t row = 0; row < a.num_rows; ++row) {
    if (row == end) ahead = 0;
    typename R::V sum[R::kVectors];
    gather<T, kLanes>(a, lanes, p.x, row, ahead, sum);
    if constexpr (kScaled) {
      typename R::V scaled[R::kVectors];
      for (int v = 0; v < R::kVectors; ++v) scaled[v] = sigma->times(sum, v);
      std::copy_n(scaled, R::kVectors, sum);
    }
    T* HWY_RESTRICT y = p.y + row * kLanes;
    if (p.add != nullptr) {
      const T* HWY_RESTRICT add = p.add + row * kLanes;
      for (int v = 0; v < R::kVectors; ++v) {
        hn::StoreU(hn::Add(sum[v], hn::LoadU(d, add + v * R::kWidth)), d, y + v * R::kWidth);
      }
    } else {
      for (int v = 0; v < R::kVectors; ++v) hn::StoreU(sum[v], d, y + v * R::kWidth);
    }
  }
}

/// kGrad: with the inner product with `other`.
template <typename T, std::int64_t kLanes, bool kGrad, bool kSeveral>
HWY_INLINE void adjoint_rows(const SliceAdjointStep<T> p) {
  using R = SliceRow<T, kLanes>;
  const typename R::D d;
  const CsrView<T> a = p.a_transposed;
  const std::int64_t rows = a.num_rows;
  const std::int64_t near_end = rows_before_end(a, kPrefetchEntries, 0, rows);
  const SliceRowFactors<T, kLanes> sigma(p.sigma_re, p.sigma_im, /*conjugate=*/true);
  const EntryOfLanes<T, kLanes, kSeveral> lanes(a, p.of_lanes);
  // Inner products are summed in T over a block of rows and then in double.
  constexpr std::int64_t kBlockRows = 256;
  for (std::int64_t begin = 0; begin < rows; begin += kBlockRows) {
    // (q_re o_re, q_im o_im) and (q_re o_im, q_im o_re) of every pair.
    typename R::V straight[R::kVectors];
    typename R::V crossed[R::kVectors];
    for (int v = 0; v < R::kVectors; ++v) straight[v] = crossed[v] = hn::Zero(d);
    const std::int64_t end = std::min(rows, begin + kBlockRows);
    const std::int64_t ahead = end <= near_end ? kPrefetchEntries : 0;
    for (std::int64_t row = begin; row < end; ++row) {
      typename R::V q[R::kVectors];
      gather<T, kLanes>(a, lanes, p.p, row, ahead, q);
      if constexpr (kGrad) {
        typename R::V other[R::kVectors];
        for (int v = 0; v < R::kVectors; ++v) {
          other[v] = hn::LoadU(d, p.other + row * kLanes + v * R::kWidth);
        }
        for (int v = 0; v < R::kVectors; ++v) {
          straight[v] = hn::MulAdd(q[v], other[v], straight[v]);
          crossed[v] = hn::MulAdd(q[v], swapped<T, kLanes>(other, v), crossed[v]);
        }
      }
      for (int v = 0; v < R::kVectors; ++v) {
        const std::int64_t at = row * kLanes + v * R::kWidth;
        auto next = sigma.times(q, v);
        if (p.add != nullptr) next = hn::Add(next, hn::LoadU(d, p.add + at));
        hn::StoreU(next, d, p.p_next + at);
        if (p.total != nullptr) {
          hn::StoreU(hn::Add(next, hn::LoadU(d, p.total + at)), d, p.total + at);
        }
      }
    }
    if constexpr (kGrad) {
      HWY_ALIGN T re[kLanes];
      HWY_ALIGN T im[kLanes];
      for (int v = 0; v < R::kVectors; ++v) {
        hn::Store(straight[v], d, re + v * R::kWidth);
        hn::Store(crossed[v], d, im + v * R::kWidth);
      }
      for (std::int64_t c = 0; c < kLanes / 2; ++c) {
        p.grad_re[c] += p.weight * (static_cast<double>(re[2 * c]) + re[2 * c + 1]);
        p.grad_im[c] += p.weight * (static_cast<double>(im[2 * c + 1]) - im[2 * c]);
      }
    }
  }
}

template <typename T, std::int64_t kLanes>
HWY_INLINE void step_lanes(const SliceStep<T>& p) {
  if (p.sigma_re == nullptr) {
    return step_rows<T, kLanes, false>(p, EntryOfLanes<T, kLanes, false>(p.a, p.of_lanes), nullptr);
  }
  const SliceRowFactors<T, kLanes> sigma(p.sigma_re, p.sigma_im, /*conjugate=*/false);
  with_operators(p.of_lanes, [&](auto several) {
    const EntryOfLanes<T, kLanes, several()> lanes(p.a, p.of_lanes);
    step_rows<T, kLanes, true>(p, lanes, &sigma);
  });
}

template <typename T, std::int64_t kLanes>
HWY_INLINE void adjoint_lanes(const SliceAdjointStep<T>& p) {
  with_operators(p.of_lanes, [&](auto several) {
    if (p.other == nullptr) {
      adjoint_rows<T, kLanes, false, several()>(p);
    } else {
      adjoint_rows<T, kLanes, true, several()>(p);
    }
  });
}

template <typename T>
HWY_INLINE void step(const SliceStep<T>& p) {
  with_lanes<T>(p.lanes, [&](auto lanes) { step_lanes<T, lanes()>(p); });
}
template <typename T>
HWY_INLINE void adjoint(const SliceAdjointStep<T>& p) {
  with_lanes<T>(p.lanes, [&](auto lanes) { adjoint_lanes<T, lanes()>(p); });
}

/// The first numbers of a row; all of them if there are as many as lanes.
template <typename T, std::int64_t kLanes>
HWY_INLINE void copy_row(const T* HWY_RESTRICT from, std::int64_t width, T* HWY_RESTRICT to) {
  using R = SliceRow<T, kLanes>;
  const typename R::D d;
  if (width == kLanes) {
    for (std::int64_t j = 0; j < kLanes; j += R::kWidth)
      hn::StoreU(hn::LoadU(d, from + j), d, to + j);
    return;
  }
  // The last ones together with some before them.
  const hn::CappedTag<T, kMinSliceLanes> few;
  constexpr auto kFew = static_cast<std::int64_t>(hn::MaxLanes(few));
  std::int64_t j = 0;
  for (; j + kFew <= width; j += kFew) hn::StoreU(hn::LoadU(few, from + j), few, to + j);
  if (j > 0) {
    j = width - kFew;
    hn::StoreU(hn::LoadU(few, from + j), few, to + j);
    return;
  }
  for (; j < width; ++j) to[j] = from[j];
}

/// kPack: into a slice, else out of one. Rows of a few hundred channels leave a page after some
/// steps, and what guesses for the hardware does, too: it is told of later rows.
template <typename T, std::int64_t kLanes, bool kPack>
HWY_INLINE void copy_rows(const SliceCopy<T> p) {
  const typename SliceRow<T, kLanes>::D d;
  constexpr auto kLine = static_cast<std::int64_t>(64 / sizeof(T));
  for (std::int64_t row = 0; row < p.rows; ++row) {
    const std::int64_t later = std::min(row + kPrefetchEntries, p.rows - 1);
    prefetch_row<T, kLanes>(p.from + (p.order == nullptr ? later : p.order[later]) * p.from_stride);
    const T* from = p.from + (p.order == nullptr ? row : p.order[row]) * p.from_stride;
    T* to = p.to + row * p.to_stride;
    if constexpr (kPack) {
      if (p.width < kLanes) {
        for (std::int64_t j = 0; j < kLanes; j += SliceRow<T, kLanes>::kWidth) {
          hn::StoreU(hn::Zero(d), d, to + j);
        }
      }
    } else {
      const T* ahead = p.to + later * p.to_stride;
      for (std::int64_t j = 0; j < kLanes; j += kLine) __builtin_prefetch(ahead + j, 1);
    }
    copy_row<T, kLanes>(from, p.width, to);
  }
}

template <bool kPack, typename T>
HWY_INLINE void copy_slice(const SliceCopy<T>& p) {
  with_lanes<T>(p.lanes, [&](auto lanes) { copy_rows<T, lanes(), kPack>(p); });
}

void PackFloat(const SliceCopy<float>& p) { copy_slice<true>(p); }
void PackDouble(const SliceCopy<double>& p) { copy_slice<true>(p); }
void UnpackFloat(const SliceCopy<float>& p) { copy_slice<false>(p); }
void UnpackDouble(const SliceCopy<double>& p) { copy_slice<false>(p); }
void StepFloat(const SliceStep<float>& p) { step(p); }
void StepDouble(const SliceStep<double>& p) { step(p); }
void AdjointFloat(const SliceAdjointStep<float>& p) { adjoint(p); }
void AdjointDouble(const SliceAdjointStep<double>& p) { adjoint(p); }

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

template <typename T>
void pack_slice(const T* source, std::int64_t stride, std::int64_t rows, std::int64_t width,
                std::int64_t lanes, T* slice, const std::int32_t* order) noexcept {
  const SliceCopy<T> copy{source, stride, slice, lanes, rows, width, lanes, order};
  if constexpr (sizeof(T) == sizeof(float)) {
    HWY_DYNAMIC_DISPATCH(PackFloat)(copy);
  } else {
    HWY_DYNAMIC_DISPATCH(PackDouble)(copy);
  }
}

template <typename T>
void unpack_slice(const T* slice, std::int64_t rows, std::int64_t width, std::int64_t lanes,
                  T* target, std::int64_t stride, const std::int32_t* order) noexcept {
  const SliceCopy<T> copy{slice, lanes, target, stride, rows, width, lanes, order};
  if constexpr (sizeof(T) == sizeof(float)) {
    HWY_DYNAMIC_DISPATCH(UnpackFloat)(copy);
  } else {
    HWY_DYNAMIC_DISPATCH(UnpackDouble)(copy);
  }
}

#define MPSSM_INSTANTIATE(T)                                                                    \
  template void pack_slice<T>(const T*, std::int64_t, std::int64_t, std::int64_t, std::int64_t, \
                              T*, const std::int32_t*) noexcept;                                \
  template void unpack_slice<T>(const T*, std::int64_t, std::int64_t, std::int64_t, T*,         \
                                std::int64_t, const std::int32_t*) noexcept;
MPSSM_INSTANTIATE(float)
MPSSM_INSTANTIATE(double)
#undef MPSSM_INSTANTIATE

}  // namespace mpssm::kernels
#endif  // HWY_ONCE
