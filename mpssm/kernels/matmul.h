// SPDX-License-Identifier: MIT
// Tall times small: the dense products of the model have many rows (nodes) and few columns
// (channels), so the small matrix is packed once and stays in cache.
#pragma once

#include <cstdint>

namespace mpssm::kernels {

/// Numbers in a packed panel of columns; packed matrices are padded with zeros to whole panels.
inline constexpr std::int64_t kPanelColumns = 16;

enum class Transpose { kNo, kYes };

/// Size of the packed form of a matrix with `inner` rows and `columns` columns.
inline std::int64_t packed_size(std::int64_t inner, std::int64_t columns) {
  return (columns + kPanelColumns - 1) / kPanelColumns * kPanelColumns * inner;
}

/// Packs W [inner, columns] (kNo) or the transpose of a stored [columns, inner] (kYes), row-major.
template <typename T>
void pack_matrix(Transpose transpose, const T* w, std::int64_t inner, std::int64_t columns,
                 T* packed) noexcept;

/// Tall matrices are row-major, or in slices as in kernels/recurrence.h (kReal): number (row, j)
/// lies at (j / lanes) * slice_stride + row * lanes + j % lanes. Row-major is one slice of all
/// columns.
struct Layout {
  std::int64_t lanes = 0;
  std::int64_t slice_stride = 0;
};

/// y = x W (+ add), rows [row_begin, row_end) of x [rows, inner], y and add [rows, columns]. y may
/// be add; it must not overlap x. Slices are whole: `inner` and `columns` are then multiples of
/// their lanes. Each number is summed over `inner` in order, so results do not depend on how rows
/// are shared out.
template <typename T>
struct MatmulArgs {
  std::int64_t inner = 0;
  std::int64_t columns = 0;
  const T* x = nullptr;
  Layout x_layout;
  const T* packed = nullptr;  // W
  const T* add = nullptr;     // optional: like y, or with `add_is_bias` one row for all
  bool add_is_bias = false;
  T* y = nullptr;
  Layout y_layout;
};
void matmul(const MatmulArgs<float>& args, std::int64_t row_begin, std::int64_t row_end) noexcept;
void matmul(const MatmulArgs<double>& args, std::int64_t row_begin, std::int64_t row_end) noexcept;

/// sum += x' g over rows [row_begin, row_end), x [rows, left] and g [rows, right] in slices, sum
/// [left, right] row-major. Lanes are even for x, multiples of kPanelColumns for g; `left` and
/// `right` are multiples of them. Each number is summed over the rows in order.
template <typename T>
struct MatmulTransposedArgs {
  std::int64_t left = 0;
  std::int64_t right = 0;
  const T* x = nullptr;
  Layout x_layout;
  const T* g = nullptr;
  Layout g_layout;
  T* sum = nullptr;
};
void matmul_transposed(const MatmulTransposedArgs<float>& args, std::int64_t row_begin,
                       std::int64_t row_end) noexcept;
void matmul_transposed(const MatmulTransposedArgs<double>& args, std::int64_t row_begin,
                       std::int64_t row_end) noexcept;

/// The same for `rows` rows of row-major x [rows, left] and g [rows, right] of any width, sum
/// [left, right] padded to whole panels. They are read as they lie, or, if their rows do not end
/// with a panel or are so wide that they drive each other out of the first-level cache, from copies
/// in slices of a panel, for which `scratch` has room: rows times both widths, padded.
void add_transposed(const float* x, std::int64_t left, const float* g, std::int64_t right,
                    std::int64_t rows, float* sum, float* scratch) noexcept;
void add_transposed(const double* x, std::int64_t left, const double* g, std::int64_t right,
                    std::int64_t rows, double* sum, double* scratch) noexcept;

/// sum[j] += the numbers of column j of `rows` rows of a row-major g [rows, width], in order.
void add_rows(const float* g, std::int64_t rows, std::int64_t width, float* sum) noexcept;
void add_rows(const double* g, std::int64_t rows, std::int64_t width, double* sum) noexcept;

}  // namespace mpssm::kernels
