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
// Rows of the transposed product that are summed in registers before they go to memory.
inline constexpr std::int64_t kDepth = 96;

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
  const T* HWY_RESTRICT w = p.packed + panel * kPanelColumns * p.inner;
  typename P::V sum[kCount][P::kVectors];
  for (int r = 0; r < kCount; ++r) {
    for (int v = 0; v < P::kVectors; ++v) sum[r][v] = hn::Zero(d);
  }
  const std::int64_t lanes = p.x_layout.lanes;
  const T* slice = p.x + row * lanes;
  for (std::int64_t done = 0; done < p.inner; done += lanes, slice += p.x_layout.slice_stride) {
    const T* x[kCount];
    for (int r = 0; r < kCount; ++r) x[r] = slice + r * lanes;
    for (std::int64_t k = 0; k < lanes; ++k, w += kPanelColumns) {
      typename P::V panel_row[P::kVectors];
      for (int v = 0; v < P::kVectors; ++v) panel_row[v] = hn::LoadU(d, w + v * P::kWidth);
      for (int r = 0; r < kCount; ++r) {
        const auto factor = hn::Set(d, x[r][k]);
        for (int v = 0; v < P::kVectors; ++v) {
          sum[r][v] = hn::MulAdd(factor, panel_row[v], sum[r][v]);
        }
      }
    }
  }
  const std::int64_t begin = panel * kPanelColumns;
  const std::int64_t y_lanes = p.y_layout.lanes;
  const std::int64_t at =
      begin / y_lanes * p.y_layout.slice_stride + row * y_lanes + begin % y_lanes;
  const std::int64_t count = std::min(kPanelColumns, p.columns - begin);
  for (int r = 0; r < kCount; ++r) {
    T* y = p.y + at + r * y_lanes;
    const T* add = p.add == nullptr ? nullptr : p.add + (p.add_is_bias ? begin : at + r * y_lanes);
    if (count == kPanelColumns) {
      for (int v = 0; v < P::kVectors; ++v) {
        const auto out =
            add == nullptr ? sum[r][v] : hn::Add(sum[r][v], hn::LoadU(d, add + v * P::kWidth));
        hn::StoreU(out, d, y + v * P::kWidth);
      }
      continue;
    }
    HWY_ALIGN T rest[kPanelColumns];
    for (int v = 0; v < P::kVectors; ++v) hn::StoreU(sum[r][v], d, rest + v * P::kWidth);
    for (std::int64_t j = 0; j < count; ++j) y[j] = add == nullptr ? rest[j] : rest[j] + add[j];
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

/// sum[i .. i + kCount, j .. j + 16] += x' g over `rows` rows; x and g point at the first of them.
template <typename T, int kCount>
HWY_INLINE void transposed_tile(const T* HWY_RESTRICT x, std::int64_t x_lanes,
                                const T* HWY_RESTRICT g, std::int64_t g_lanes, std::int64_t rows,
                                T* sum, std::int64_t sum_stride) {
  using P = Panel<T>;
  const typename P::D d;
  typename P::V total[kCount][P::kVectors];
  for (int r = 0; r < kCount; ++r) {
    for (int v = 0; v < P::kVectors; ++v) {
      total[r][v] = hn::LoadU(d, sum + r * sum_stride + v * P::kWidth);
    }
  }
  for (std::int64_t row = 0; row < rows; ++row, x += x_lanes, g += g_lanes) {
    typename P::V part[P::kVectors];
    for (int v = 0; v < P::kVectors; ++v) part[v] = hn::LoadU(d, g + v * P::kWidth);
    for (int r = 0; r < kCount; ++r) {
      const auto factor = hn::Set(d, x[r]);
      for (int v = 0; v < P::kVectors; ++v) total[r][v] = hn::MulAdd(factor, part[v], total[r][v]);
    }
  }
  for (int r = 0; r < kCount; ++r) {
    for (int v = 0; v < P::kVectors; ++v) {
      hn::StoreU(total[r][v], d, sum + r * sum_stride + v * P::kWidth);
    }
  }
}

/// Blocks of rows small enough that a slice of x and one of g share the first-level cache.
template <typename T>
HWY_INLINE void transposed_rows(const MatmulTransposedArgs<T>& p, std::int64_t row_begin,
                                std::int64_t row_end) {
  const std::int64_t lanes = p.x_layout.lanes;
  const std::int64_t g_lanes = p.g_layout.lanes;
  for (std::int64_t begin = row_begin; begin < row_end; begin += kDepth) {
    const std::int64_t rows = std::min(kDepth, row_end - begin);
    for (std::int64_t i_slice = 0; i_slice < p.left / lanes; ++i_slice) {
      const T* x = p.x + i_slice * p.x_layout.slice_stride + begin * lanes;
      for (std::int64_t j = 0; j < p.right; j += kPanelColumns) {
        const T* g = p.g + j / g_lanes * p.g_layout.slice_stride + begin * g_lanes + j % g_lanes;
        T* sum = p.sum + i_slice * lanes * p.right + j;
        std::int64_t i = 0;
        for (; i + kRows <= lanes; i += kRows) {
          transposed_tile<T, kRows>(x + i, lanes, g, g_lanes, rows, sum + i * p.right, p.right);
        }
        for (; i + 2 <= lanes; i += 2) {
          transposed_tile<T, 2>(x + i, lanes, g, g_lanes, rows, sum + i * p.right, p.right);
        }
      }
    }
  }
}

void MatmulFloat(const MatmulArgs<float>& p, std::int64_t b, std::int64_t e) {
  matmul_rows(p, b, e);
}
void MatmulDouble(const MatmulArgs<double>& p, std::int64_t b, std::int64_t e) {
  matmul_rows(p, b, e);
}
void TransposedFloat(const MatmulTransposedArgs<float>& p, std::int64_t b, std::int64_t e) {
  transposed_rows(p, b, e);
}
void TransposedDouble(const MatmulTransposedArgs<double>& p, std::int64_t b, std::int64_t e) {
  transposed_rows(p, b, e);
}

}  // namespace mpssm::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mpssm::kernels {

HWY_EXPORT(MatmulFloat);
HWY_EXPORT(MatmulDouble);
HWY_EXPORT(TransposedFloat);
HWY_EXPORT(TransposedDouble);

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

template <std::int64_t kLanes, typename T>
void pack_rows(const T* x, std::int64_t rows, std::int64_t width, T* slices) noexcept {
  for (std::int64_t row = 0; row < rows; ++row, x += width) {
    T* to = slices + row * kLanes;
    std::int64_t begin = 0;
    for (; begin + kLanes <= width; begin += kLanes, to += rows * kLanes) {
      for (std::int64_t j = 0; j < kLanes; ++j) to[j] = x[begin + j];  // a few vectors
    }
    if (begin == width) continue;
    for (std::int64_t j = 0; j < kLanes; ++j) to[j] = begin + j < width ? x[begin + j] : T{0};
  }
}
template void pack_rows<kLeftLanes>(const float*, std::int64_t, std::int64_t, float*) noexcept;
template void pack_rows<kLeftLanes>(const double*, std::int64_t, std::int64_t, double*) noexcept;
template void pack_rows<kRightLanes>(const float*, std::int64_t, std::int64_t, float*) noexcept;
template void pack_rows<kRightLanes>(const double*, std::int64_t, std::int64_t, double*) noexcept;

void matmul(const MatmulArgs<float>& args, std::int64_t row_begin, std::int64_t row_end) noexcept {
  HWY_DYNAMIC_DISPATCH(MatmulFloat)(args, row_begin, row_end);
}
void matmul(const MatmulArgs<double>& args, std::int64_t row_begin, std::int64_t row_end) noexcept {
  HWY_DYNAMIC_DISPATCH(MatmulDouble)(args, row_begin, row_end);
}
void matmul_transposed(const MatmulTransposedArgs<float>& args, std::int64_t row_begin,
                       std::int64_t row_end) noexcept {
  HWY_DYNAMIC_DISPATCH(TransposedFloat)(args, row_begin, row_end);
}
void matmul_transposed(const MatmulTransposedArgs<double>& args, std::int64_t row_begin,
                       std::int64_t row_end) noexcept {
  HWY_DYNAMIC_DISPATCH(TransposedDouble)(args, row_begin, row_end);
}

}  // namespace mpssm::kernels
#endif  // HWY_ONCE
