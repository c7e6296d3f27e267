// SPDX-License-Identifier: MIT
// Traffic: width * (nonzeros reads + rows writes); 2 flops per number read, so the speed is that of
// the cache level x sits in. As much of a row as registers hold is summed in one pass over its
// entries; rows of entries to come are prefetched, because the columns of a graph are as good as
// random and the hardware cannot guess.
#include "mpssm/kernels/spmm.h"

#include <algorithm>

#include "mpssm/kernels/entries_ahead.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mpssm/kernels/spmm.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace mpssm::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

inline constexpr std::int64_t kLine = 64;  // bytes of a cache line
// Accumulators of a tile: half of the registers.
inline constexpr int kMaxVectors = HWY_MAX_BYTES >= 64 ? 16 : 8;
// Rows that go through all tiles of a width that takes several.
inline constexpr std::int64_t kBlockRows = 256;

/// Entries ahead of the one in use whose row is asked for: about as many lines as one core can have
/// in flight, and less than the first cache holds. Narrow rows out of a near cache come soon, and
/// asking earlier costs more than it saves.
inline constexpr std::int64_t kMostAhead = 16;
inline constexpr std::int64_t kNearAhead = 8;
inline constexpr std::int64_t kNearBytes = std::int64_t{8} << 20;
constexpr std::int64_t prefetch_entries(std::int64_t lines, std::int64_t bytes) {
  if (lines <= 4 && bytes <= kNearBytes) return kNearAhead;
  return lines > 8 ? kMostAhead / 2 : kMostAhead;
}

/// Columns [begin, begin + kVectors * lanes) of rows [row_begin, row_end). kNearEnd: entries ahead
/// may lie behind the last one; looking at each costs some percent of narrow rows.
template <int kVectors, bool kStream, bool kNearEnd, class D, typename T = hn::TFromD<D>>
HWY_NOINLINE void tile_rows(D d, const SpmmArgs<T>& p, std::int64_t begin, std::int64_t row_begin,
                            std::int64_t row_end) {
  constexpr std::int64_t kLineLanes = kLine / static_cast<std::int64_t>(sizeof(T));
  constexpr std::int64_t kLines =
      (kVectors * static_cast<std::int64_t>(hn::MaxLanes(D())) + kLineLanes - 1) / kLineLanes;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  // Locals, because a store of a vector may for all the compiler knows write to p.
  const T* HWY_RESTRICT const x = p.x + begin;
  const std::int64_t x_stride = p.x_stride;
  const std::int64_t* HWY_RESTRICT const row_ptr = p.a.row_ptr;
  const std::int32_t* HWY_RESTRICT const col = p.a.col;
  const T* HWY_RESTRICT const value = p.a.value;
  const T* const add = p.add == nullptr ? nullptr : p.add + begin;
  const std::int64_t add_stride = p.add_stride;
  T* const y = p.y + begin;
  const std::int64_t y_stride = p.y_stride;
  const std::int64_t last_entry = row_ptr[p.a.num_rows] - 1;
  const std::int64_t ahead_by =
      prefetch_entries(kLines, p.a.num_rows * x_stride * static_cast<std::int64_t>(sizeof(T)));
  std::int64_t e = row_ptr[row_begin];
  for (std::int64_t row = row_begin; row < row_end; ++row) {
    hn::Vec<D> sum[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      sum[v] = add == nullptr ? hn::Zero(d) : hn::LoadU(d, add + row * add_stride + v * lanes);
    }
    for (const std::int64_t end = row_ptr[row + 1]; e < end; ++e) {
      std::int64_t later = e + ahead_by;
      if constexpr (kNearEnd) later = std::min(later, last_entry);
      const T* ahead = x + col[later] * x_stride;
      for (std::int64_t line = 0; line < kLines; ++line) hwy::Prefetch(ahead + line * kLineLanes);
      const T* HWY_RESTRICT source = x + col[e] * x_stride;
      const auto entry = hn::Set(d, value[e]);
      for (int v = 0; v < kVectors; ++v) {
        sum[v] = hn::MulAdd(entry, hn::LoadU(d, source + v * lanes), sum[v]);
      }
    }
    T* const target = y + row * y_stride;
    for (int v = 0; v < kVectors; ++v) {
      if constexpr (kStream) {
        hn::Stream(sum[v], d, target + v * lanes);
      } else {
        hn::StoreU(sum[v], d, target + v * lanes);
      }
    }
  }
}

template <int kVectors, bool kStream, class D, typename T = hn::TFromD<D>>
HWY_INLINE void tile(D d, const SpmmArgs<T>& p, std::int64_t begin, std::int64_t row_begin,
                     std::int64_t row_end) {
  const std::int64_t end = rows_before_end(p.a, kMostAhead, row_begin, row_end);
  if (row_begin < end) tile_rows<kVectors, kStream, false>(d, p, begin, row_begin, end);
  if (end < row_end) tile_rows<kVectors, kStream, true>(d, p, begin, end, row_end);
}

/// What is left of the rows after tiles of 2 * kVectors, in halving tiles. Returns its end.
template <int kVectors, bool kStream, class D, typename T = hn::TFromD<D>>
HWY_INLINE std::int64_t tiles(D d, const SpmmArgs<T>& p, std::int64_t begin, std::int64_t row_begin,
                              std::int64_t row_end) {
  const std::int64_t columns = kVectors * static_cast<std::int64_t>(hn::Lanes(d));
  for (; begin + columns <= p.width; begin += columns) {
    tile<kVectors, kStream>(d, p, begin, row_begin, row_end);
  }
  if constexpr (kVectors > 1) {
    if (begin < p.width) return tiles<kVectors / 2, kStream>(d, p, begin, row_begin, row_end);
  }
  return begin;
}

/// Columns too few for a vector, in halving vector sizes: no masked loads, no reads past the end.
template <std::size_t kLanes, typename T>
HWY_INLINE void tail(const SpmmArgs<T>& p, std::int64_t begin, std::int64_t row_begin,
                     std::int64_t row_end) {
  const hn::CappedTag<T, kLanes> d;
  begin = tiles<1, false>(d, p, begin, row_begin, row_end);
  if constexpr (kLanes > 1) {
    if (begin < p.width) tail<kLanes / 2>(p, begin, row_begin, row_end);
  }
}

/// Whole lines alone can be written past the cache.
template <typename T>
bool has_whole_lines(const SpmmArgs<T>& p) {
  const auto bytes = [](std::int64_t count) {
    return count * static_cast<std::int64_t>(sizeof(T));
  };
  return reinterpret_cast<std::uintptr_t>(p.y) % kLine == 0 && bytes(p.y_stride) % kLine == 0 &&
         bytes(p.width) % kLine == 0;
}

template <typename T>
HWY_INLINE void spmm_rows(const SpmmArgs<T>& p, std::int64_t row_begin, std::int64_t row_end) {
  const hn::ScalableTag<T> d;
  const bool streams = p.stream && has_whole_lines(p);
  for (std::int64_t row = row_begin; row < row_end; row += kBlockRows) {
    const std::int64_t end = std::min(row_end, row + kBlockRows);
    if (streams) {
      tiles<kMaxVectors, true>(d, p, 0, row, end);
    } else {
      const std::int64_t begin = tiles<kMaxVectors, false>(d, p, 0, row, end);
      if (begin < p.width) tail<HWY_LANES(T)>(p, begin, row, end);
    }
  }
  if (streams) hwy::FlushStream();
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
