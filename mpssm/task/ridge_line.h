// SPDX-License-Identifier: MIT
// Ridge regression of what follows a window on what is seen in it. Private to task/.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "mpssm/data/dataset.h"

namespace mpssm::task {

/// A series as lines see it, the same for all nodes.
struct LineSeries {
  at::Tensor seen;           ///< [T, N]
  at::Tensor truth;          ///< [T, N]; NaN: missing
  at::Tensor calendar = {};  ///< [T, K] seen at the last step of a window; undefined: nothing
  std::int64_t lags = 1;
  std::int64_t horizon = 1;

  std::int64_t num_calendar() const { return calendar.defined() ? calendar.size(1) : 0; }
};

/// Windows [begin, end) of x [T, N], `count` steps from `first` on: [end - begin, N, count], a
/// view.
at::Tensor windows_of(const at::Tensor& x, std::int64_t begin, std::int64_t end, std::int64_t first,
                      std::int64_t count);

/// Weights [H, lags + K + 1] on the window's values, its calendar and a constant: its strength
/// chosen on validation, by mean absolute or by squared errors, then fitted to the windows [0,
/// fit_end). The same bits for any number of threads.
at::Tensor ridge_line(const LineSeries& series, const data::WindowSplit& split,
                      std::int64_t fit_end, bool loss_is_mae);

/// Its forecasts for the windows [begin, end): [B, N, H].
at::Tensor apply_line(const LineSeries& series, const at::Tensor& weights, std::int64_t begin,
                      std::int64_t end);

/// x becomes A^-1 x for a symmetric positive definite A [n, n], which becomes its Cholesky factor.
void solve_in_place(double* a, double* x, std::int64_t n);

}  // namespace mpssm::task
