// SPDX-License-Identifier: MIT
// A block of sums has as many rows and columns as registers hold, so that a number is loaded for
// several multiply-adds: six rows by sixteen columns (in float) where there are sixteen vector
// registers, twelve by thirty-two where there are 32: 24 multiply-adds per 2 + 12 loads keep two
// units busy that have a latency of four. A panel (inner x 16) stays in the first-level cache while
// a group of rows passes by.
#include "mpssm/kernels/matmul.h"

#include <algorithm>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mpssm/kernels/matmul.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "mpssm/kernels/panel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mpssm::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

inline constexpr bool kManyRegisters = HWY_MAX_BYTES >= 64;
inline constexpr int kRows = kManyRegisters ? 12 : 6;
// Rows that pass a panel before the next panel's turn: small enough for the second-level cache.
inline constexpr std::int64_t kGroupRows = 96;
// Columns of x in a block of the transposed product: eight where there are 32 registers, so that no
// width of slices leaves a remainder.
inline constexpr int kLeft = kManyRegisters ? 8 : 6;
// Rows of the transposed product that are summed in registers before they go to memory: few enough
// that their columns do not drive each other out of the first-level cache where rows are a kilobyte
// apart.
inline constexpr std::int64_t kDepth = 48;

// Panels side by side in a block of sums.
template <typename T>
inline constexpr int kPanelsAbreast = Panel<T>::kVectors == 1 && kManyRegisters ? 2 : 1;

/// kCount rows of a panel of y from `row` on: the sums, `stride` vectors from row to row, and what
/// is added to them.
template <typename T, int kCount, int kStride>
HWY_INLINE void store_rows(const MatmulArgs<T>& p, const typename Panel<T>::V* sum,
                           std::int64_t row, std::int64_t panel) {
  using P = Panel<T>;
  const std::int64_t y_lanes = p.y_layout.lanes;
  const std::int64_t begin = panel * kPanelColumns;
  const std::int64_t at =
      begin / y_lanes * p.y_layout.slice_stride + row * y_lanes + begin % y_lanes;
  const std::int64_t count = std::min(kPanelColumns, p.columns - begin);
  T* y = p.y + at;
  const T* add = p.add == nullptr ? nullptr : p.add + (p.add_is_bias ? begin : at);
  const std::int64_t add_stride = p.add_is_bias ? 0 : y_lanes;
  const auto store = [&](auto is_whole) {
    for (int r = 0; r < kCount; ++r, y += y_lanes, sum += kStride) {
      for (int v = 0; v < P::kVectors && v * P::kWidth < count; ++v) {
        const std::int64_t n = is_whole() ? P::kWidth : std::min(P::kWidth, count - v * P::kWidth);
        const auto out = add == nullptr ? sum[v] : hn::Add(sum[v], P::load(add + v * P::kWidth, n));
        P::store(out, y + v * P::kWidth, n);
      }
      if (add != nullptr) add += add_stride;
    }
  };
  if (count == kPanelColumns) return store(std::true_type());
  store(std::false_type());
}

/// kCount rows starting at `row` times kPanels panels; all of `inner` in registers.
template <typename T, int kCount, int kPanels>
HWY_INLINE void tile(const MatmulArgs<T>& p, std::int64_t row, std::int64_t panel) {
  using P = Panel<T>;
  const typename P::D d;
  constexpr int kAll = kPanels * P::kVectors;
  const std::int64_t panel_size = kPanelColumns * p.inner;
  const T* HWY_RESTRICT w = p.packed + panel * panel_size;
  typename P::V sum[kCount][kAll];
  for (int r = 0; r < kCount; ++r) {
    for (int v = 0; v < kAll; ++v) sum[r][v] = hn::Zero(d);
  }
  const std::int64_t lanes = p.x_layout.lanes;
  const T* slice = p.x + row * lanes;
  for (std::int64_t done = 0; done < p.inner; done += lanes, slice += p.x_layout.slice_stride) {
    // A pointer for three rows each, the others by its distance: there are not twelve to spare.
    const T* x[(kCount + 2) / 3];
    for (int r = 0; r < kCount; r += 3) x[r / 3] = slice + r * lanes;
    for (std::int64_t k = 0; k < lanes; ++k, w += kPanelColumns) {
      typename P::V panel_row[kAll];
      for (int v = 0; v < kAll; ++v) {
        panel_row[v] = hn::LoadU(d, w + v / P::kVectors * panel_size + v % P::kVectors * P::kWidth);
      }
      for (int r = 0; r < kCount; ++r) {
        const auto factor = hn::Set(d, x[r / 3][r % 3 * lanes + k]);
        for (int v = 0; v < kAll; ++v) sum[r][v] = hn::MulAdd(factor, panel_row[v], sum[r][v]);
      }
    }
  }
  for (int q = 0; q < kPanels; ++q) {
    store_rows<T, kCount, kAll>(p, sum[0] + q * P::kVectors, row, panel + q);
  }
}

/// Rows [begin, end) of kPanels panels.
template <int kPanels, typename T>
HWY_INLINE void tiles(const MatmulArgs<T>& p, std::int64_t row, std::int64_t end,
                      std::int64_t panel) {
  for (; row + kRows <= end; row += kRows) tile<T, kRows, kPanels>(p, row, panel);
  if constexpr (kRows > 6) {
    if (row + 6 <= end) {
      tile<T, 6, kPanels>(p, row, panel);
      row += 6;
    }
  }
  for (; row + 2 <= end; row += 2) tile<T, 2, kPanels>(p, row, panel);
  if (row < end) tile<T, 1, kPanels>(p, row, panel);
}

template <typename T>
HWY_INLINE void matmul_rows(const MatmulArgs<T>& p, std::int64_t row_begin, std::int64_t row_end) {
  constexpr int kPanels = kPanelsAbreast<T>;
  const std::int64_t panels = (p.columns + kPanelColumns - 1) / kPanelColumns;
  for (std::int64_t group = row_begin; group < row_end; group += kGroupRows) {
    const std::int64_t end = std::min(row_end, group + kGroupRows);
    std::int64_t panel = 0;
    for (; panel + kPanels <= panels; panel += kPanels) tiles<kPanels>(p, group, end, panel);
    if (panel < panels) tiles<1>(p, group, end, panel);
  }
}

/// sum[i .. i + kCount, j .. j + 16 kPanels] += x' g over `rows` rows; x and g point at the first
/// of them, one g for each panel. Asks for the numbers that lie x_ahead and g_ahead further on:
/// those of the next block, or, once they have been asked for, nothing new (0).
template <typename T, int kCount, int kPanels>
HWY_INLINE void transposed_tile(const T* HWY_RESTRICT x, std::int64_t x_lanes, const T* const* g_in,
                                std::int64_t g_lanes, std::int64_t rows, T* sum,
                                std::int64_t sum_stride, std::int64_t x_ahead,
                                std::int64_t g_ahead) {
  using P = Panel<T>;
  const typename P::D d;
  constexpr int kAll = kPanels * P::kVectors;
  const T* g[kPanels];
  for (int panel = 0; panel < kPanels; ++panel) g[panel] = g_in[panel];
  typename P::V total[kCount][kAll];
  for (int r = 0; r < kCount; ++r) {
    for (int v = 0; v < kAll; ++v) total[r][v] = hn::LoadU(d, sum + r * sum_stride + v * P::kWidth);
  }
  for (std::int64_t row = 0; row < rows; ++row, x += x_lanes) {
    typename P::V part[kAll];
    hwy::Prefetch(x + x_ahead);
    for (int panel = 0; panel < kPanels; ++panel) {
      hwy::Prefetch(g[panel] + g_ahead);
      for (int v = 0; v < P::kVectors; ++v) {
        part[panel * P::kVectors + v] = hn::LoadU(d, g[panel] + v * P::kWidth);
      }
      g[panel] += g_lanes;
    }
    for (int r = 0; r < kCount; ++r) {
      const auto factor = hn::Set(d, x[r]);
      for (int v = 0; v < kAll; ++v) total[r][v] = hn::MulAdd(factor, part[v], total[r][v]);
    }
  }
  for (int r = 0; r < kCount; ++r) {
    for (int v = 0; v < kAll; ++v) {
      hn::StoreU(total[r][v], d, sum + r * sum_stride + v * P::kWidth);
    }
  }
}

/// All columns of a slice of x with kPanels panels of g.
template <int kPanels, typename T>
HWY_INLINE void transposed_slice(const T* x, std::int64_t lanes, const T* const* g,
                                 std::int64_t g_lanes, std::int64_t rows, T* sum,
                                 std::int64_t stride, std::int64_t x_ahead) {
  std::int64_t i = 0;
  const auto g_ahead = [&i, g_lanes] { return i == 0 ? kDepth * g_lanes : 0; };
  for (; i + kLeft <= lanes; i += kLeft) {
    transposed_tile<T, kLeft, kPanels>(x + i, lanes, g, g_lanes, rows, sum + i * stride, stride,
                                       x_ahead, g_ahead());
  }
  if (i + 4 <= lanes) {
    transposed_tile<T, 4, kPanels>(x + i, lanes, g, g_lanes, rows, sum + i * stride, stride,
                                   x_ahead, g_ahead());
    i += 4;
  }
  for (; i + 2 <= lanes; i += 2) {
    transposed_tile<T, 2, kPanels>(x + i, lanes, g, g_lanes, rows, sum + i * stride, stride,
                                   x_ahead, g_ahead());
  }
}

/// Blocks of rows small enough that a slice of x and one of g share the first-level cache.
template <typename T>
HWY_INLINE void transposed_rows(const MatmulTransposedArgs<T>& p, std::int64_t row_begin,
                                std::int64_t row_end) {
  constexpr int kPanels = kPanelsAbreast<T>;
  const std::int64_t lanes = p.x_layout.lanes;
  const std::int64_t g_lanes = p.g_layout.lanes;
  for (std::int64_t begin = row_begin; begin < row_end; begin += kDepth) {
    const std::int64_t rows = std::min(kDepth, row_end - begin);
    for (std::int64_t i_slice = 0; i_slice < p.left / lanes; ++i_slice) {
      const T* x = p.x + i_slice * p.x_layout.slice_stride + begin * lanes;
      T* sum = p.sum + i_slice * lanes * p.right;
      const auto panel_at = [&](std::int64_t j) {
        return p.g + j / g_lanes * p.g_layout.slice_stride + begin * g_lanes + j % g_lanes;
      };
      std::int64_t j = 0;
      const auto x_ahead = [&j, lanes] { return j == 0 ? kDepth * lanes : 0; };
      for (; j + kPanels * kPanelColumns <= p.right; j += kPanels * kPanelColumns) {
        const T* g[kPanels];
        for (int panel = 0; panel < kPanels; ++panel)
          g[panel] = panel_at(j + panel * kPanelColumns);
        transposed_slice<kPanels>(x, lanes, g, g_lanes, rows, sum + j, p.right, x_ahead());
      }
      if (j < p.right) {
        const T* g = panel_at(j);
        transposed_slice<1>(x, lanes, &g, g_lanes, rows, sum + j, p.right, x_ahead());
      }
    }
  }
}

/// Of rows this wide, a column shares too few lines of the first-level cache.
inline constexpr std::int64_t kWideBytes = 2048;

/// Rows of a tall matrix in whole panels.
template <typename T>
struct PanelRows {
  const T* x;
  Layout layout;
};

/// x [rows, width] itself, or its copy with zeros beyond `width`.
template <typename T>
HWY_INLINE PanelRows<T> panel_rows(const T* HWY_RESTRICT x, std::int64_t rows, std::int64_t width,
                                   T* HWY_RESTRICT copy) {
  using P = Panel<T>;
  const typename P::D d;
  if (width % kPanelColumns == 0 && width * static_cast<std::int64_t>(sizeof(T)) < kWideBytes) {
    return {x, {width, 0}};
  }
  for (std::int64_t row = 0; row < rows; ++row) {
    T* to = copy + row * kPanelColumns;
    for (std::int64_t j = 0; j < width; j += kPanelColumns, to += rows * kPanelColumns) {
      for (int v = 0; v < P::kVectors; ++v) {
        const std::int64_t at = j + v * P::kWidth;
        const std::int64_t count = std::clamp<std::int64_t>(width - at, 0, P::kWidth);
        hn::StoreU(P::load(x + row * width + at, count), d, to + v * P::kWidth);
      }
    }
  }
  return {copy, {kPanelColumns, rows * kPanelColumns}};
}

template <typename T>
HWY_INLINE void add_transposed_rows(const T* x, std::int64_t left, const T* g, std::int64_t right,
                                    std::int64_t rows, T* sum, T* scratch) {
  const auto whole = [](std::int64_t width) { return packed_size(1, width); };
  const PanelRows<T> x_rows = panel_rows(x, rows, left, scratch);
  const PanelRows<T> g_rows = panel_rows(g, rows, right, scratch + rows * whole(left));
  transposed_rows<T>(
      {whole(left), whole(right), x_rows.x, x_rows.layout, g_rows.x, g_rows.layout, sum}, 0, rows);
}

void AddTransposedFloat(const float* x, std::int64_t left, const float* g, std::int64_t right,
                        std::int64_t rows, float* sum, float* scratch) {
  add_transposed_rows(x, left, g, right, rows, sum, scratch);
}
void AddTransposedDouble(const double* x, std::int64_t left, const double* g, std::int64_t right,
                         std::int64_t rows, double* sum, double* scratch) {
  add_transposed_rows(x, left, g, right, rows, sum, scratch);
}

template <typename T>
HWY_INLINE void add_all_rows(const T* HWY_RESTRICT g, std::int64_t rows, std::int64_t width,
                             T* HWY_RESTRICT sum) {
  using P = Panel<T>;
  P::visit_row(width, [&](int, std::int64_t j, std::int64_t n) {
    auto total = P::load(sum + j, n);
    for (std::int64_t row = 0; row < rows; ++row) {
      total = hn::Add(total, P::load(g + row * width + j, n));
    }
    P::store(total, sum + j, n);
  });
}
void AddRowsFloat(const float* g, std::int64_t rows, std::int64_t width, float* sum) {
  add_all_rows(g, rows, width, sum);
}
void AddRowsDouble(const double* g, std::int64_t rows, std::int64_t width, double* sum) {
  add_all_rows(g, rows, width, sum);
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
HWY_EXPORT(AddTransposedFloat);
HWY_EXPORT(AddTransposedDouble);
HWY_EXPORT(AddRowsFloat);
HWY_EXPORT(AddRowsDouble);

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
void matmul_transposed(const MatmulTransposedArgs<float>& args, std::int64_t row_begin,
                       std::int64_t row_end) noexcept {
  HWY_DYNAMIC_DISPATCH(TransposedFloat)(args, row_begin, row_end);
}
void matmul_transposed(const MatmulTransposedArgs<double>& args, std::int64_t row_begin,
                       std::int64_t row_end) noexcept {
  HWY_DYNAMIC_DISPATCH(TransposedDouble)(args, row_begin, row_end);
}
void add_transposed(const float* x, std::int64_t left, const float* g, std::int64_t right,
                    std::int64_t rows, float* sum, float* scratch) noexcept {
  HWY_DYNAMIC_DISPATCH(AddTransposedFloat)(x, left, g, right, rows, sum, scratch);
}
void add_transposed(const double* x, std::int64_t left, const double* g, std::int64_t right,
                    std::int64_t rows, double* sum, double* scratch) noexcept {
  HWY_DYNAMIC_DISPATCH(AddTransposedDouble)(x, left, g, right, rows, sum, scratch);
}

void add_rows(const float* g, std::int64_t rows, std::int64_t width, float* sum) noexcept {
  HWY_DYNAMIC_DISPATCH(AddRowsFloat)(g, rows, width, sum);
}
void add_rows(const double* g, std::int64_t rows, std::int64_t width, double* sum) noexcept {
  HWY_DYNAMIC_DISPATCH(AddRowsDouble)(g, rows, width, sum);
}

}  // namespace mpssm::kernels
#endif  // HWY_ONCE
