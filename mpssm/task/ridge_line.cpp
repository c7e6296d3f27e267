// SPDX-License-Identifier: MIT
#include "mpssm/task/ridge_line.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <torch/types.h>

#include "mpssm/ops/linear.h"
#include "mpssm/task/metrics.h"
#include "mpssm/task/problems.h"

namespace mpssm::task {
namespace {

/// Normal equations of a regression on the window, the calendar and a constant, in double, one set
/// per step ahead: targets may be missing at one and not at another.
struct NormalEquations {
  torch::Tensor gram;   // [H, C, C], C = lags + K + 1
  torch::Tensor right;  // [H, C, 1]
  double count = 0.0;

  /// Ridge regression: [H, C]. The constant is not penalised.
  torch::Tensor solve(double strength) const {
    const std::int64_t size = gram.size(1);
    torch::Tensor penalty = strength * count * torch::eye(size, torch::kDouble);
    penalty[size - 1][size - 1] = 1e-9;
    torch::Tensor lines = right.squeeze(2).clone();
    const torch::Tensor matrices = (gram + penalty).contiguous();
    for (std::int64_t h = 0; h < lines.size(0); ++h) {
      solve_in_place(matrices.data_ptr<double>() + h * size * size,
                     lines.data_ptr<double>() + h * size, size);
    }
    return lines;
  }
};

/// Windows by the thousand take more memory as doubles than the training that follows: so many
/// readings at a time.
template <typename Body>
void for_some_windows(std::int64_t first, std::int64_t last, std::int64_t num_nodes,
                      const Body& body) {
  constexpr std::int64_t kReadings = 1 << 16;
  const std::int64_t step = std::max<std::int64_t>(1, kReadings / num_nodes);
  for (std::int64_t begin = first; begin < last; begin += step) {
    body(begin, std::min(begin + step, last));
  }
}

/// [B, K] of windows [begin, end).
torch::Tensor calendar_of(const LineSeries& series, std::int64_t begin, std::int64_t end) {
  return series.calendar.slice(0, begin + series.lags - 1, end + series.lags - 1)
      .to(torch::kDouble);
}

NormalEquations normal_equations(const LineSeries& series, std::int64_t fit_end) {
  const std::int64_t size = series.lags + series.num_calendar() + 1;
  const std::int64_t num_nodes = series.seen.size(1);
  NormalEquations sums{torch::zeros({series.horizon, size, size}, torch::kDouble),
                       torch::zeros({series.horizon, size, 1}, torch::kDouble)};
  for_some_windows(0, fit_end, num_nodes, [&](std::int64_t begin, std::int64_t end) {
    const torch::Tensor seen = windows_of(series.seen, begin, end, 0, series.lags);
    const torch::Tensor truth = windows_of(series.truth, begin, end, series.lags, series.horizon);
    std::vector<torch::Tensor> columns;
    columns.reserve(3);  // GCC 12 takes growing by one for an overrun
    columns.push_back(seen.reshape({-1, series.lags}).to(torch::kDouble));
    if (series.num_calendar() > 0) {
      columns.push_back(calendar_of(series, begin, end).repeat_interleave(num_nodes, 0));
    }
    columns.push_back(torch::ones({columns[0].size(0), 1}, torch::kDouble));
    const torch::Tensor design = torch::cat(columns, 1);
    for (std::int64_t h = 0; h < series.horizon; ++h) {
      const torch::Tensor y = truth.select(2, h).reshape({-1, 1}).to(torch::kDouble);
      const torch::Tensor known = design * y.isfinite().to(torch::kDouble);
      sums.gram[h] += ops::transposed_matmul(known, design);
      sums.right[h] += ops::transposed_matmul(known, y.nan_to_num());
    }
    sums.count += static_cast<double>(design.size(0));
  });
  return sums;
}

}  // namespace

// LAPACK's would depend on the threads.
void solve_in_place(double* a, double* x, std::int64_t n) {
  const auto dot = [&](const double* row, const double* other, std::int64_t count) {
    return std::inner_product(row, row + count, other, 0.0);
  };
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j <= i; ++j) {
      const double rest = a[i * n + j] - dot(a + i * n, a + j * n, j);
      a[i * n + j] = i == j ? std::sqrt(rest) : rest / a[j * n + j];
    }
    x[i] = (x[i] - dot(a + i * n, x, i)) / a[i * n + i];
  }
  for (std::int64_t i = n; i-- > 0;) {
    for (std::int64_t j = i + 1; j < n; ++j) x[i] -= a[j * n + i] * x[j];
    x[i] /= a[i * n + i];
  }
}

at::Tensor windows_of(const at::Tensor& x, std::int64_t begin, std::int64_t end, std::int64_t first,
                      std::int64_t count) {
  return x.slice(0, begin + first, end + first + count - 1).unfold(0, count, 1);
}

at::Tensor apply_line(const LineSeries& series, const at::Tensor& weights, std::int64_t begin,
                      std::int64_t end) {
  const std::int64_t lags = series.lags;
  const std::int64_t num_calendar = series.num_calendar();
  const torch::Tensor slope = weights.slice(1, 0, lags).t();  // [lags, H]
  const torch::Tensor by_date = weights.slice(1, lags, lags + num_calendar).t();
  torch::Tensor result = torch::empty({end - begin, series.seen.size(1), series.horizon});
  for_some_windows(begin, end, series.seen.size(1), [&](std::int64_t first, std::int64_t last) {
    const torch::Tensor some = windows_of(series.seen, first, last, 0, lags).to(torch::kDouble);
    torch::Tensor forecast = ops::matmul(some, slope) + weights.select(1, lags + num_calendar);
    if (num_calendar > 0) {
      forecast += ops::matmul(calendar_of(series, first, last), by_date).unsqueeze(1);
    }
    result.slice(0, first - begin, last - begin).copy_(forecast);
  });
  return result;
}

at::Tensor ridge_line(const LineSeries& series, const data::WindowSplit& split,
                      std::int64_t fit_end, bool loss_is_mae) {
  const torch::Tensor truth =
      windows_of(series.truth, split.val, split.test, series.lags, series.horizon).contiguous();
  const NormalEquations equations = normal_equations(series, split.val);
  double best_strength = 0.0;
  double best_loss = std::numeric_limits<double>::infinity();
  for (const double strength : {1e-6, 1e-3, 1e-2, 1e-1, 1.0}) {
    const torch::Tensor forecast =
        apply_line(series, equations.solve(strength), split.val, split.test);
    const Errors of_line = errors(numbers_of(forecast), numbers_of(truth));
    const double loss = loss_is_mae ? of_line.mae : of_line.mse;
    if (best_strength == 0.0 || loss < best_loss) {
      best_strength = strength;
      best_loss = loss;
    }
  }
  if (fit_end == split.val) return equations.solve(best_strength);
  return normal_equations(series, fit_end).solve(best_strength);
}

}  // namespace mpssm::task
