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

/// y = x W (+ add), rows [row_begin, row_end) of x [rows, inner], y and add [rows, columns], all
/// row-major without gaps. y may be add; it must not overlap x. Each number is summed over `inner`
/// in order, so results do not depend on how rows are shared out.
template <typename T>
struct MatmulArgs {
  std::int64_t inner = 0;
  std::int64_t columns = 0;
  const T* x = nullptr;
  const T* packed = nullptr;    // W
  const T* add = nullptr;       // optional
  std::int64_t add_stride = 0;  // from row to row; 0: one row for all, a bias
  T* y = nullptr;
};
void matmul(const MatmulArgs<float>& args, std::int64_t row_begin, std::int64_t row_end) noexcept;
void matmul(const MatmulArgs<double>& args, std::int64_t row_begin, std::int64_t row_end) noexcept;

}  // namespace mpssm::kernels
