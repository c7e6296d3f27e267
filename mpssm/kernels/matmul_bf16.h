// SPDX-License-Identifier: MIT
// The dense products of matmul.h with factors in bfloat16 and sums in float: twice as fast where
// the CPU has AVX-512 BF16, the same numbers elsewhere.
//
// Each number is the sum s of its products, two at a time: s = fma(x1, w1, s), s = fma(x0, w0, s)
// for pairs (x0, x1) of neighbours, in order. Products of bfloat16 are exact in float, so that
// sets of instructions with and without fused multiply-adds agree, too. What may differ is a sum
// that is subnormal on its way (below 1.2e-38): the instructions take it for zero.
#pragma once

#include <cstdint>

#include "mpssm/kernels/bf16.h"
#include "mpssm/kernels/matmul.h"

namespace mpssm::kernels {

/// Factors come in pairs: numbers of an inner axis, padded with a zero.
inline std::int64_t padded_inner(std::int64_t inner) { return (inner + 1) / 2 * 2; }

/// Size of the packed form of a matrix with `inner` rows and `columns` columns.
inline std::int64_t packed_size_bf16(std::int64_t inner, std::int64_t columns) {
  return packed_size(padded_inner(inner), columns);
}

/// Rounds and packs W [inner, columns] (kNo) or the transpose of a stored [columns, inner] (kYes).
void pack_matrix(Transpose transpose, const float* w, std::int64_t inner, std::int64_t columns,
                 Bf16* packed) noexcept;

/// Rounds `rows` rows of a row-major x [rows, width] to rows of padded_inner(width) numbers.
void round_rows(const float* x, std::int64_t rows, std::int64_t width, Bf16* out) noexcept;

/// y = x W (+ add) as MatmulArgs has it, with `inner` even (padded), lanes of x even. Y is float or
/// Bf16: in slices y and add are then rounded once, after the sum.
template <typename Y>
struct Bf16MatmulArgs {
  std::int64_t inner = 0;
  std::int64_t columns = 0;
  const Bf16* x = nullptr;
  Layout x_layout;
  const Bf16* packed = nullptr;  // W
  const Y* add = nullptr;        // optional: like y, or with `add_is_bias` one row for all
  bool add_is_bias = false;
  Y* y = nullptr;
  Layout y_layout;
};
void matmul(const Bf16MatmulArgs<float>& args, std::int64_t row_begin,
            std::int64_t row_end) noexcept;
void matmul(const Bf16MatmulArgs<Bf16>& args, std::int64_t row_begin,
            std::int64_t row_end) noexcept;

/// Numbers that `rows` rows of `width` take as pairs of rows.
inline std::int64_t row_pairs_size(std::int64_t rows, std::int64_t width) {
  return packed_size_bf16(rows, width);
}

/// Rounds `rows` rows of x [rows, width], row-major, into what matmul_transposed() reads: slices of
/// kPanelColumns columns, [slices][pairs of rows][kPanelColumns][2], zeros beyond width and rows.
void pack_row_pairs(const float* x, std::int64_t rows, std::int64_t width, Bf16* pairs) noexcept;
/// The same of rows [begin, begin + rows) of a matrix in slices of whole panels.
void pack_row_pairs(const Bf16* x, const Layout& layout, std::int64_t begin, std::int64_t rows,
                    std::int64_t width, Bf16* pairs) noexcept;

/// sum += x' g over packed pairs of rows: x of `left` and g of `right` columns, both multiples of
/// kPanelColumns, sum [left, right] row-major.
struct Bf16TransposedArgs {
  std::int64_t left = 0;
  std::int64_t right = 0;
  std::int64_t rows = 0;
  const Bf16* x = nullptr;
  const Bf16* g = nullptr;
  float* sum = nullptr;
};
void matmul_transposed(const Bf16TransposedArgs& args) noexcept;

/// The same for row-major x [rows, left] and g [rows, right] of any width, sum [left, right] padded
/// to whole panels; `scratch` has room for the pairs of both.
void add_transposed(const float* x, std::int64_t left, const float* g, std::int64_t right,
                    std::int64_t rows, float* sum, Bf16* scratch) noexcept;

}  // namespace mpssm::kernels
