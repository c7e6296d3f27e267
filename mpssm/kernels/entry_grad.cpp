// SPDX-License-Identifier: MIT
// An entry reads one row of x, as a step does, and sums it up across its lanes: the rows of p, one
// per node, are multiplied by conj(sigma) once and stay in registers.
#include "mpssm/kernels/entry_grad.h"

#include <algorithm>

#include "mpssm/kernels/entries_ahead.h"
#include "mpssm/kernels/recurrence.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mpssm/kernels/entry_grad.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "mpssm/kernels/slice_row-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mpssm::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

inline constexpr std::int64_t kEntriesAhead = 16;

template <typename T, std::int64_t kLanes, bool kNearEnd>
HWY_INLINE void entry_grad_rows(const SliceEntryGrad<T>& args,
                                const SliceRowFactors<T, kLanes>& sigma, std::int64_t row_begin,
                                std::int64_t row_end) {
  using R = SliceRow<T, kLanes>;
  const typename R::D d;
  const CsrView<T> a = args.a;
  const std::int64_t last_entry = a.row_ptr[a.num_rows] - 1;
  for (std::int64_t row = row_begin; row < row_end; ++row) {
    const T* HWY_RESTRICT p = args.p + row * kLanes;
    typename R::V of_row[R::kVectors];
    typename R::V scaled[R::kVectors];  // conj(sigma) p
    for (int v = 0; v < R::kVectors; ++v) of_row[v] = hn::LoadU(d, p + v * R::kWidth);
    for (int v = 0; v < R::kVectors; ++v) scaled[v] = sigma.times(of_row, v);
    for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1]; ++e) {
      std::int64_t later = e + kEntriesAhead;
      if constexpr (kNearEnd) later = std::min(later, last_entry);
      prefetch_row<T, kLanes>(args.x + a.col[later] * kLanes);
      const T* HWY_RESTRICT x = args.x + a.col[e] * kLanes;
      auto sum = hn::Mul(scaled[0], hn::LoadU(d, x));
      for (int v = 1; v < R::kVectors; ++v) {
        sum = hn::MulAdd(scaled[v], hn::LoadU(d, x + v * R::kWidth), sum);
      }
      args.grad[e] += hn::GetLane(hn::SumOfLanes(d, sum));
    }
  }
}

template <typename T, std::int64_t kLanes>
HWY_INLINE void entry_grad(const SliceEntryGrad<T>& args) {
  const std::int64_t rows = args.a.num_rows;
  const std::int64_t near_end = rows_before_end(args.a, kEntriesAhead, 0, rows);
  const SliceRowFactors<T, kLanes> sigma(args.sigma_re, args.sigma_im, /*conjugate=*/true);
  entry_grad_rows<T, kLanes, false>(args, sigma, 0, near_end);
  entry_grad_rows<T, kLanes, true>(args, sigma, near_end, rows);
}

template <typename T>
HWY_INLINE void entry_grad_by_lanes(const SliceEntryGrad<T>& args) {
  with_lanes<T>(args.lanes, [&](auto lanes) { entry_grad<T, lanes()>(args); });
}

void EntryGradFloat(const SliceEntryGrad<float>& args) { entry_grad_by_lanes(args); }
void EntryGradDouble(const SliceEntryGrad<double>& args) { entry_grad_by_lanes(args); }

}  // namespace mpssm::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mpssm::kernels {

HWY_EXPORT(EntryGradFloat);
HWY_EXPORT(EntryGradDouble);

void slice_entry_grad(const SliceEntryGrad<float>& args) noexcept {
  HWY_DYNAMIC_DISPATCH(EntryGradFloat)(args);
}
void slice_entry_grad(const SliceEntryGrad<double>& args) noexcept {
  HWY_DYNAMIC_DISPATCH(EntryGradDouble)(args);
}

}  // namespace mpssm::kernels
#endif  // HWY_ONCE
