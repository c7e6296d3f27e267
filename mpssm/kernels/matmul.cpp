// SPDX-License-Identifier: MIT
// Six rows by one panel of sixteen columns is the block of sums that fits the sixteen vector
// registers of AVX2 (in float) with room for two panel vectors and a broadcast: 12 multiply-adds
// per 2 + 6 loads. A panel (inner x 16) stays in the first-level cache while a group of rows passes
// by.
#include "mpssm/kernels/matmul.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mpssm/kernels/matmul.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace mpssm::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

inline constexpr int kRows = 6;
// Rows that pass a panel before the next panel's turn: small enough for the second-level cache.
inline constexpr std::int64_t kGroupRows = 96;

template <typename T>
struct Panel {
  using D = hn::CappedTag<T, kPanelColumns>;
  using V = hn::Vec<D>;
  static constexpr std::int64_t kWidth = static_cast<std::int64_t>(hn::MaxLanes(D()));
  static constexpr int kVectors = static_cast<int>(kPanelColumns / kWidth);
};

/// kCount rows starting at `row` times one panel; all of `inner` in registers.
template <typename T, int kCount>
HWY_INLINE void tile(const MatmulArgs<T>& p, std::int64_t row, std::int64_t panel) {
  using P = Panel<T>;
  const typename P::D d;
  const std::int64_t inner = p.inner;
  const T* x[kCount];
  for (int r = 0; r < kCount; ++r) x[r] = p.x + (row + r) * inner;
  const T* HWY_RESTRICT w = p.packed + panel * kPanelColumns * inner;
  typename P::V sum[kCount][P::kVectors];
  for (int r = 0; r < kCount; ++r) {
    for (int v = 0; v < P::kVectors; ++v) sum[r][v] = hn::Zero(d);
  }
  for (std::int64_t k = 0; k < inner; ++k, w += kPanelColumns) {
    typename P::V panel_row[P::kVectors];
    for (int v = 0; v < P::kVectors; ++v) panel_row[v] = hn::LoadU(d, w + v * P::kWidth);
    for (int r = 0; r < kCount; ++r) {
      const auto factor = hn::Set(d, x[r][k]);
      for (int v = 0; v < P::kVectors; ++v) {
        sum[r][v] = hn::MulAdd(factor, panel_row[v], sum[r][v]);
      }
    }
  }
  const std::int64_t begin = panel * kPanelColumns;
  const bool whole = begin + kPanelColumns <= p.columns;
  for (int r = 0; r < kCount; ++r) {
    T* y = p.y + (row + r) * p.columns + begin;
    const T* add = p.add == nullptr ? nullptr : p.add + (row + r) * p.add_stride + begin;
    if (whole) {
      for (int v = 0; v < P::kVectors; ++v) {
        const auto out =
            add == nullptr ? sum[r][v] : hn::Add(sum[r][v], hn::LoadU(d, add + v * P::kWidth));
        hn::StoreU(out, d, y + v * P::kWidth);
      }
      continue;
    }
    HWY_ALIGN T rest[kPanelColumns];
    for (int v = 0; v < P::kVectors; ++v) hn::StoreU(sum[r][v], d, rest + v * P::kWidth);
    for (std::int64_t j = 0; j < p.columns - begin; ++j) {
      y[j] = add == nullptr ? rest[j] : rest[j] + add[j];
    }
  }
}

template <typename T>
HWY_INLINE void matmul_rows(const MatmulArgs<T>& p, std::int64_t row_begin, std::int64_t row_end) {
  const std::int64_t panels = (p.columns + kPanelColumns - 1) / kPanelColumns;
  for (std::int64_t group = row_begin; group < row_end; group += kGroupRows) {
    const std::int64_t end = std::min(row_end, group + kGroupRows);
    for (std::int64_t panel = 0; panel < panels; ++panel) {
      std::int64_t row = group;
      for (; row + kRows <= end; row += kRows) tile<T, kRows>(p, row, panel);
      for (; row + 2 <= end; row += 2) tile<T, 2>(p, row, panel);
      if (row < end) tile<T, 1>(p, row, panel);
    }
  }
}

void MatmulFloat(const MatmulArgs<float>& p, std::int64_t b, std::int64_t e) {
  matmul_rows(p, b, e);
}
void MatmulDouble(const MatmulArgs<double>& p, std::int64_t b, std::int64_t e) {
  matmul_rows(p, b, e);
}

}  // namespace mpssm::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mpssm::kernels {

HWY_EXPORT(MatmulFloat);
HWY_EXPORT(MatmulDouble);

template <typename T>
void pack_matrix(Transpose transpose, const T* w, std::int64_t inner, std::int64_t columns,
                 T* packed) noexcept {
  const std::int64_t row_stride = transpose == Transpose::kNo ? columns : 1;
  const std::int64_t column_stride = transpose == Transpose::kNo ? 1 : inner;
  for (std::int64_t begin = 0; begin < columns; begin += kPanelColumns) {
    const std::int64_t count = std::min(kPanelColumns, columns - begin);
    for (std::int64_t k = 0; k < inner; ++k) {
      const T* from = w + k * row_stride + begin * column_stride;
      for (std::int64_t j = 0; j < count; ++j) packed[j] = from[j * column_stride];
      for (std::int64_t j = count; j < kPanelColumns; ++j) packed[j] = T{0};
      packed += kPanelColumns;
    }
  }
}
template void pack_matrix<float>(Transpose, const float*, std::int64_t, std::int64_t,
                                 float*) noexcept;
template void pack_matrix<double>(Transpose, const double*, std::int64_t, std::int64_t,
                                  double*) noexcept;

void matmul(const MatmulArgs<float>& args, std::int64_t row_begin, std::int64_t row_end) noexcept {
  HWY_DYNAMIC_DISPATCH(MatmulFloat)(args, row_begin, row_end);
}
void matmul(const MatmulArgs<double>& args, std::int64_t row_begin, std::int64_t row_end) noexcept {
  HWY_DYNAMIC_DISPATCH(MatmulDouble)(args, row_begin, row_end);
}
}  // namespace mpssm::kernels
#endif  // HWY_ONCE
