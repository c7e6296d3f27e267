// SPDX-License-Identifier: MIT
#include "mpssm/task/forecast_references.h"

#include <cmath>
#include <fmt/core.h>
#include <vector>

#include <torch/types.h>

#include "mpssm/data/period.h"
#include "mpssm/task/metrics.h"
#include "mpssm/task/node_lines.h"
#include "mpssm/task/problems.h"
#include "mpssm/task/series_view.h"

namespace mpssm::task {
namespace {

constexpr std::int64_t kHarmonics = 3;
/// Of so few numbers an error is that of chance as well: it gets an interval.
constexpr std::int64_t kFewNumbers = 200;

/// Where there is a truth.
std::vector<double> differences_of(const torch::Tensor& forecast, const torch::Tensor& truth) {
  const torch::Tensor left = forecast.contiguous();
  const torch::Tensor right = truth.contiguous();
  std::vector<double> differences;
  for (std::int64_t i = 0; i < right.numel(); ++i) {
    const double is = right.data_ptr<float>()[i];
    if (!std::isnan(is)) differences.push_back(left.data_ptr<float>()[i] - is);
  }
  return differences;
}

}  // namespace

Metrics forecast_metrics(const torch::Tensor& forecast, const torch::Tensor& truth,
                         bool loss_is_mae) {
  const auto measure = [&](const torch::Tensor& y, const torch::Tensor& t) {
    const torch::Tensor left = y.contiguous();
    const torch::Tensor right = t.contiguous();
    return errors(numbers_of(left), numbers_of(right));
  };
  Metrics metrics;
  const Errors all = measure(forecast, truth);
  add_error_metrics(all, metrics);
  metrics["loss"] = loss_is_mae ? all.mae : all.mse;
  if (!loss_is_mae && all.count <= kFewNumbers) {
    std::vector<double> squared;
    for (const double difference : differences_of(forecast, truth)) {
      squared.push_back(difference * difference);
    }
    const MeanInterval interval = bootstrap_interval(squared);
    metrics["mse_low"] = interval.low;
    metrics["mse_high"] = interval.high;
  }
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

std::vector<Reference> forecast_references(const data::SeriesData& data,
                                           const data::WindowSplit& split, bool loss_is_mae) {
  const SeriesView plain(data, {.fill = data::Fill::kLast}, split.val, nullptr);
  const auto of_test = [&](const torch::Tensor& x, std::int64_t first, std::int64_t count) {
    return windows_of(x, split.test, split.end, first, count);
  };
  const torch::Tensor truth = of_test(plain.measured, data.lags, data.horizon);
  std::vector<Reference> references;
  const auto add = [&](std::string name, const torch::Tensor& forecast) {
    references.push_back({std::move(name), forecast_metrics(forecast, truth, loss_is_mae)});
  };

  const bool has_missing = data.null_value || plain.measured.isnan().any().item<bool>();
  if (!has_missing) add("zero", torch::zeros_like(truth));
  const torch::Tensor last = of_test(plain.line.seen, data.lags - 1, 1);
  add(has_missing ? "last observed value" : "last value", last.expand_as(truth));
  const auto add_line = [&](std::string name, const LineSeries& line) {
    add(std::move(name),
        apply_line(line, ridge_line(line, split, split.val, loss_is_mae), split.test, split.end));
  };
  if (data.period > 0.0) {
    const SeriesView deviations(data, {.fill = data::Fill::kMean, .deviation = true}, split.val,
                                nullptr);
    const torch::Tensor mean =
        of_test(deviations.base.slice(0, 0, data.num_steps), data.lags, data.horizon);
    add("historical average", mean);
    if (loss_is_mae) {
      add("line per node on deviations from it",
          mean + forecasts_by_node_lines(deviations.line, split.val, split.test, split.end));
    } else {
      LineSeries line = plain.line;
      line.calendar = harmonics_of(data, kHarmonics);
      add_line(fmt::format("line (ridge), {} harmonics", kHarmonics), line);
    }
  }
  add_line("line (ridge)", plain.line);
  return references;
}

}  // namespace mpssm::task
