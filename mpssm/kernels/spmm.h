// SPDX-License-Identifier: MIT
// Sparse times dense: the message passing itself, for rows of any width.
#pragma once

#include <cstdint>

#include "mpssm/kernels/csr_view.h"

namespace mpssm::kernels {

/// y(i, :) = sum_j a(i, j) x(j, :) + add(i, :). Rows of x, y and add are contiguous runs of `width`
/// numbers, `*_stride` apart. y must not overlap x; it may be the same memory as add.
template <typename T>
struct SpmmArgs {
  CsrView<T> a;
  const T* x = nullptr;
  std::int64_t x_stride = 0;
  const T* add = nullptr;  // optional
  std::int64_t add_stride = 0;
  T* y = nullptr;
  std::int64_t y_stride = 0;
  std::int64_t width = 0;
  bool stream = false;  // y past the cache, if its rows are whole cache lines: for a y too large
};

/// Rows [row_begin, row_end) of y. Each number is summed in the order of its row's entries, so the
/// result does not depend on how rows are shared out.
void spmm(const SpmmArgs<float>& args, std::int64_t row_begin, std::int64_t row_end) noexcept;
void spmm(const SpmmArgs<double>& args, std::int64_t row_begin, std::int64_t row_end) noexcept;

/// Gradient of spmm with respect to the entries: grad[e] += <g(i, :), x(col[e], :)> for the entries
/// e of rows [row_begin, row_end).
template <typename T>
struct SpmmValueGradArgs {
  CsrView<T> a;  // value is not read
  const T* g = nullptr;
  std::int64_t g_stride = 0;
  const T* x = nullptr;
  std::int64_t x_stride = 0;
  T* grad = nullptr;  // [nonzeros]
  std::int64_t width = 0;
};

void spmm_value_grad(const SpmmValueGradArgs<float>& args, std::int64_t row_begin,
                     std::int64_t row_end) noexcept;
void spmm_value_grad(const SpmmValueGradArgs<double>& args, std::int64_t row_begin,
                     std::int64_t row_end) noexcept;

}  // namespace mpssm::kernels
