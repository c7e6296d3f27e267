// SPDX-License-Identifier: MIT
#include "mpssm/task/forecast_references.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <limits>
#include <numeric>

#include <torch/types.h>

#include "mpssm/ops/linear.h"
#include "mpssm/task/metrics.h"
#include "mpssm/task/problems.h"

namespace mpssm::task {
namespace {

/// Windows [begin, end) of feature 0 as tensors.
struct Windows {
  torch::Tensor seen;   // [B, N, lags]
  torch::Tensor truth;  // [B, N, horizon]
};

Windows windows_of(const data::SeriesData& data, const torch::Tensor& series, std::int64_t begin,
                   std::int64_t end) {
  // unfold: [windows, N, lags + horizon], a view.
  const torch::Tensor all = series.unfold(0, data.lags + data.horizon, 1).slice(0, begin, end);
  return {all.slice(2, 0, data.lags), all.slice(2, data.lags)};
}

/// The series with each missing value replaced by the last one observed at its node; missing until
/// there is one.
torch::Tensor carry_forward(const torch::Tensor& series, float null_value) {
  torch::Tensor filled = series.clone();
  float* values = filled.data_ptr<float>();
  const std::int64_t n = series.size(1);
  for (std::int64_t i = n; i < filled.numel(); ++i) {
    if (values[i] == null_value) values[i] = values[i - n];
  }
  return filled;
}

/// Mean of the training values of each node at each time of the week (of the day, if the training
/// part is shorter than two weeks).
torch::Tensor historical_average(const data::SeriesData& data, const data::WindowSplit& split) {
  const std::int64_t train_steps = split.val + data.lags + data.horizon - 1;
  double step = 1.0;
  for (std::int64_t t = 1; t < data.num_steps; ++t) {
    const double difference = data.time_of_day[t] - data.time_of_day[t - 1];
    if (difference > 0.0) step = std::min(step, difference);
  }
  const std::int64_t per_day = std::max<std::int64_t>(std::llround(1.0 / step), 1);
  const std::int64_t days = train_steps >= 14 * per_day ? 7 : 1;
  // Days are counted where the clock turns back, so that a missing hour does not shift them.
  std::vector<std::int64_t> slot(data.num_steps);
  std::int64_t day = 0;
  for (std::int64_t t = 0; t < data.num_steps; ++t) {
    if (t > 0 && data.time_of_day[t] < data.time_of_day[t - 1]) ++day;
    slot[t] = (day % days) * per_day + std::llround(data.time_of_day[t] / step) % per_day;
  }
  const std::int64_t n = data.num_nodes;
  std::vector<double> sum(days * per_day * n, 0.0);
  std::vector<double> count(days * per_day * n, 0.0);
  std::vector<double> node_sum(n, 0.0);
  std::vector<double> node_count(n, 1e-30);
  for (std::int64_t t = 0; t < train_steps; ++t) {
    for (std::int64_t i = 0; i < n; ++i) {
      const float x = data.values[(t * n + i) * data.num_features];
      if (data.null_value && x == *data.null_value) continue;
      sum[slot[t] * n + i] += x;
      count[slot[t] * n + i] += 1.0;
      node_sum[i] += x;
      node_count[i] += 1.0;
    }
  }
  torch::Tensor average = torch::empty({data.num_steps, n});
  for (std::int64_t t = 0; t < data.num_steps; ++t) {
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t s = slot[t] * n + i;
      average.data_ptr<float>()[t * n + i] =
          static_cast<float>(count[s] > 0.0 ? sum[s] / count[s] : node_sum[i] / node_count[i]);
    }
  }
  return average;
}

/// x becomes A^-1 x for a symmetric positive definite A [n, n], which becomes its Cholesky factor.
/// LAPACK's would depend on the threads.
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

/// Normal equations of a regression on the window and a constant, in double, one set per step
/// ahead: targets may be missing at one and not at another.
struct NormalEquations {
  torch::Tensor gram;   // [H, lags + 1, lags + 1]
  torch::Tensor right;  // [H, lags + 1, 1]
  double count = 0.0;

  /// Ridge regression: [H, lags + 1]. The constant is not penalised.
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
/// readings at a time. `body(begin, end)` gets windows of [B, N, ...].
template <typename Body>
void for_some_windows(const torch::Tensor& windows, const Body& body) {
  constexpr std::int64_t kReadings = 1 << 16;
  const std::int64_t count = windows.size(0);
  const std::int64_t step = std::max<std::int64_t>(1, kReadings / windows.size(1));
  for (std::int64_t begin = 0; begin < count; begin += step) {
    body(begin, std::min(begin + step, count));
  }
}

NormalEquations normal_equations(const Windows& train, std::optional<float> null_value) {
  const std::int64_t lags = train.seen.size(2);
  const std::int64_t horizon = train.truth.size(2);
  NormalEquations sums{torch::zeros({horizon, lags + 1, lags + 1}, torch::kDouble),
                       torch::zeros({horizon, lags + 1, 1}, torch::kDouble)};
  for_some_windows(train.seen, [&](std::int64_t begin, std::int64_t end) {
    const torch::Tensor x = train.seen.slice(0, begin, end).reshape({-1, lags}).to(torch::kDouble);
    const torch::Tensor design = torch::cat({x, torch::ones({x.size(0), 1}, torch::kDouble)}, 1);
    for (std::int64_t h = 0; h < horizon; ++h) {
      const torch::Tensor y =
          train.truth.slice(0, begin, end).select(2, h).reshape({-1, 1}).to(torch::kDouble);
      const torch::Tensor known =
          null_value ? design * (y != *null_value).to(torch::kDouble) : design;
      sums.gram[h] += ops::transposed_matmul(known, design);
      sums.right[h] += ops::transposed_matmul(known, y);
    }
    sums.count += static_cast<double>(x.size(0));
  });
  return sums;
}

torch::Tensor apply_line(const torch::Tensor& seen, const torch::Tensor& weights) {
  const std::int64_t lags = seen.size(2);
  const torch::Tensor slope = weights.slice(1, 0, lags).t();  // [lags, H]
  torch::Tensor result = torch::empty({seen.size(0), seen.size(1), slope.size(1)});
  for_some_windows(seen, [&](std::int64_t begin, std::int64_t end) {
    const torch::Tensor some = seen.slice(0, begin, end).to(torch::kDouble);
    result.slice(0, begin, end).copy_(ops::matmul(some, slope) + weights.select(1, lags));
  });
  return result;
}

}  // namespace

Metrics forecast_metrics(const torch::Tensor& forecast, const torch::Tensor& truth,
                         std::optional<float> null_value, bool loss_is_mae) {
  const auto measure = [&](const torch::Tensor& y, const torch::Tensor& t) {
    const torch::Tensor left = y.contiguous();
    const torch::Tensor right = t.contiguous();
    return errors(numbers_of(left), numbers_of(right), null_value);
  };
  Metrics metrics;
  const Errors all = measure(forecast, truth);
  add_error_metrics(all, metrics);
  metrics["loss"] = loss_is_mae ? all.mae : all.mse;
  for (const std::int64_t h : {3, 6, 12}) {
    if (truth.size(2) < h) continue;
    const Errors at_step = measure(forecast.select(2, h - 1), truth.select(2, h - 1));
    const std::string suffix = fmt::format("_{}", h);
    metrics["mae" + suffix] = at_step.mae;
    metrics["rmse" + suffix] = at_step.rmse;
    metrics["mape" + suffix] = at_step.mape;
  }
  return metrics;
}

torch::Tensor ridge_line(const data::SeriesData& data, const data::WindowSplit& split,
                         std::int64_t fit_end, bool loss_is_mae) {
  const torch::Tensor series = measured(data);
  const Windows val = windows_of(data, series, split.val, split.test);
  const NormalEquations equations =
      normal_equations(windows_of(data, series, 0, split.val), data.null_value);
  double best_strength = 0.0;
  double best_loss = std::numeric_limits<double>::infinity();
  for (const double strength : {1e-6, 1e-3, 1e-2, 1e-1, 1.0}) {
    const torch::Tensor forecast = apply_line(val.seen, equations.solve(strength));
    const double loss = forecast_metrics(forecast, val.truth, data.null_value, loss_is_mae)["loss"];
    if (best_strength == 0.0 || loss < best_loss) {
      best_strength = strength;
      best_loss = loss;
    }
  }
  if (fit_end == split.val) return equations.solve(best_strength);
  return normal_equations(windows_of(data, series, 0, fit_end), data.null_value)
      .solve(best_strength);
}

std::vector<Reference> forecast_references(const data::SeriesData& data,
                                           const data::WindowSplit& split, bool loss_is_mae) {
  const torch::Tensor series = measured(data);
  const Windows test = windows_of(data, series, split.test, split.end);
  const auto score = [&](const torch::Tensor& forecast, const torch::Tensor& truth) {
    return forecast_metrics(forecast, truth, data.null_value, loss_is_mae);
  };

  std::vector<Reference> references;
  if (!data.null_value) {
    references.push_back({"zero", score(torch::zeros_like(test.truth), test.truth)});
  }
  const torch::Tensor known = data.null_value ? carry_forward(series, *data.null_value) : series;
  const torch::Tensor last =
      windows_of(data, known, split.test, split.end).seen.slice(2, data.lags - 1);
  references.push_back({data.null_value ? "last observed value" : "last value",
                        score(last.expand_as(test.truth), test.truth)});
  if (!data.time_of_day.empty()) {
    const torch::Tensor average = historical_average(data, split);
    const Windows of_average = windows_of(data, average, split.test, split.end);
    references.push_back({"historical average", score(of_average.truth, test.truth)});
  }
  const torch::Tensor line = ridge_line(data, split, split.val, loss_is_mae);
  references.push_back({"line (ridge)", score(apply_line(test.seen, line), test.truth)});
  return references;
}

}  // namespace mpssm::task
