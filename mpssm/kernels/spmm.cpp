// SPDX-License-Identifier: MIT
// Traffic: width * (nonzeros reads + rows writes); 2 flops per number read, so the speed is that of
// the cache level x sits in. Eight vector accumulators cover a tile of the row: enough to hide the
// latency of the multiply-add, few enough to stay in registers next to the broadcast entry.
#include "mpssm/kernels/spmm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mpssm/kernels/spmm.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace mpssm::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Columns [begin, begin + kVectors * lanes) of one row.
template <int kVectors, class D, typename T = hn::TFromD<D>>
HWY_INLINE void row_tile(D d, const SpmmArgs<T>& p, std::int64_t row, std::int64_t begin) {
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const T* HWY_RESTRICT x = p.x + begin;
  hn::Vec<D> sum[kVectors];
  for (int v = 0; v < kVectors; ++v) {
    sum[v] = p.add == nullptr ? hn::Zero(d)
                              : hn::LoadU(d, p.add + row * p.add_stride + begin + v * lanes);
  }
  for (std::int64_t e = p.a.row_ptr[row]; e < p.a.row_ptr[row + 1]; ++e) {
    const T* HWY_RESTRICT source = x + p.a.col[e] * p.x_stride;
    const auto entry = hn::Set(d, p.a.value[e]);
    for (int v = 0; v < kVectors; ++v) {
      sum[v] = hn::MulAdd(entry, hn::LoadU(d, source + v * lanes), sum[v]);
    }
  }
  T* HWY_RESTRICT y = p.y + row * p.y_stride + begin;
  for (int v = 0; v < kVectors; ++v) hn::StoreU(sum[v], d, y + v * lanes);
}

/// Whatever is left of a row after the tiles, in halving vector sizes: no masked loads, no reads
/// past the end.
template <std::size_t kLanes, typename T>
HWY_INLINE void row_tail(const SpmmArgs<T>& p, std::int64_t row, std::int64_t begin) {
  const hn::CappedTag<T, kLanes> d;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  while (p.width - begin >= lanes) {
    row_tile<1>(d, p, row, begin);
    begin += lanes;
  }
  if constexpr (kLanes > 1) {
    if (begin < p.width) row_tail<kLanes / 2>(p, row, begin);
  }
}

template <typename T>
HWY_INLINE void spmm_rows(const SpmmArgs<T>& p, std::int64_t row_begin, std::int64_t row_end) {
  const hn::ScalableTag<T> d;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t row = row_begin; row < row_end; ++row) {
    std::int64_t begin = 0;
    for (; begin + 8 * lanes <= p.width; begin += 8 * lanes) row_tile<8>(d, p, row, begin);
    if (begin + 4 * lanes <= p.width) {
      row_tile<4>(d, p, row, begin);
      begin += 4 * lanes;
    }
    if (begin + 2 * lanes <= p.width) {
      row_tile<2>(d, p, row, begin);
      begin += 2 * lanes;
    }
    if (begin < p.width) row_tail<HWY_LANES(T)>(p, row, begin);
  }
}

template <typename T>
HWY_INLINE void value_grad_rows(const SpmmValueGradArgs<T>& p, std::int64_t row_begin,
                                std::int64_t row_end) {
  const hn::ScalableTag<T> d;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t row = row_begin; row < row_end; ++row) {
    const T* HWY_RESTRICT g = p.g + row * p.g_stride;
    for (std::int64_t e = p.a.row_ptr[row]; e < p.a.row_ptr[row + 1]; ++e) {
      const T* HWY_RESTRICT x = p.x + p.a.col[e] * p.x_stride;
      auto sum = hn::Zero(d);
      std::int64_t c = 0;
      for (; c + lanes <= p.width; c += lanes) {
        sum = hn::MulAdd(hn::LoadU(d, g + c), hn::LoadU(d, x + c), sum);
      }
      T dot = hn::GetLane(hn::SumOfLanes(d, sum));
      for (; c < p.width; ++c) dot += g[c] * x[c];
      p.grad[e] += dot;
    }
  }
}

void SpmmFloat(const SpmmArgs<float>& p, std::int64_t b, std::int64_t e) { spmm_rows(p, b, e); }
void SpmmDouble(const SpmmArgs<double>& p, std::int64_t b, std::int64_t e) { spmm_rows(p, b, e); }
void ValueGradFloat(const SpmmValueGradArgs<float>& p, std::int64_t b, std::int64_t e) {
  value_grad_rows(p, b, e);
}
void ValueGradDouble(const SpmmValueGradArgs<double>& p, std::int64_t b, std::int64_t e) {
  value_grad_rows(p, b, e);
}

}  // namespace mpssm::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mpssm::kernels {

HWY_EXPORT(SpmmFloat);
HWY_EXPORT(SpmmDouble);
HWY_EXPORT(ValueGradFloat);
HWY_EXPORT(ValueGradDouble);

void spmm(const SpmmArgs<float>& args, std::int64_t row_begin, std::int64_t row_end) noexcept {
  HWY_DYNAMIC_DISPATCH(SpmmFloat)(args, row_begin, row_end);
}
void spmm(const SpmmArgs<double>& args, std::int64_t row_begin, std::int64_t row_end) noexcept {
  HWY_DYNAMIC_DISPATCH(SpmmDouble)(args, row_begin, row_end);
}
void spmm_value_grad(const SpmmValueGradArgs<float>& args, std::int64_t row_begin,
                     std::int64_t row_end) noexcept {
  HWY_DYNAMIC_DISPATCH(ValueGradFloat)(args, row_begin, row_end);
}
void spmm_value_grad(const SpmmValueGradArgs<double>& args, std::int64_t row_begin,
                     std::int64_t row_end) noexcept {
  HWY_DYNAMIC_DISPATCH(ValueGradDouble)(args, row_begin, row_end);
}

}  // namespace mpssm::kernels
#endif  // HWY_ONCE
