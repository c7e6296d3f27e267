// SPDX-License-Identifier: MIT
#include "mpssm/report/forecast_errors.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mpssm::report {
namespace {

constexpr std::int64_t kExamples = 4;
constexpr std::int64_t kTrackSteps = 200;  // of consecutive forecasts one step ahead
constexpr std::int64_t kShortHorizon = 2;  // a window of that few steps shows nothing
constexpr std::int64_t kScatterNumbers = 1500;
constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

}  // namespace

void ForecastCollector::Sum::add(double error) {
  absolute += std::abs(error);
  squares += error * error;
  difference += error;
  ++count;
}

ForecastCollector::ForecastCollector(const data::SeriesData& series, std::int64_t windows)
    : series_(series),
      windows_(windows),
      step_(static_cast<std::size_t>(series.horizon)),
      node_(static_cast<std::size_t>(series.num_nodes)),
      hour_(series.time_of_day.empty() ? 0 : 24) {
  result_.windows = windows;
  result_.horizon = series.horizon;
  result_.node_ids = series.node_ids;
}

double ForecastCollector::truth_at(std::int64_t step, std::int64_t node) const {
  const float value = series_.values[(step * series_.num_nodes + node) * series_.num_features];
  const bool is_missing = series_.null_value && value == *series_.null_value;
  return is_missing || std::isnan(value) ? kMissing : static_cast<double>(value);
}

void ForecastCollector::add(std::int64_t window, std::int64_t node,
                            std::span<const double> forecast) {
  if (first_window_ < 0) first_window_ = window;
  const std::int64_t numbers = windows_ * series_.num_nodes * series_.horizon;
  const std::int64_t every = std::max<std::int64_t>(numbers / kScatterNumbers, 1);
  for (std::int64_t h = 0; h < series_.horizon; ++h) {
    const std::int64_t step = window + series_.lags + h;
    const double truth = truth_at(step, node);
    const bool is_shown = taken_++ % every == 0;
    if (std::isnan(truth)) continue;
    const double error = forecast[h] - truth;
    step_[h].add(error);
    node_[node].add(error);
    if (!hour_.empty()) {
      const int hour = static_cast<int>(series_.time_of_day[step] * 24.0F + 1e-4F);
      hour_[std::clamp(hour, 0, 23)].add(error);
    }
    if (is_shown) {
      result_.truth.push_back(truth);
      result_.forecast.push_back(forecast[h]);
    }
  }
  take_example(window, node, forecast);
}

void ForecastCollector::take_example(std::int64_t window, std::int64_t node,
                                     std::span<const double> forecast) {
  const std::int64_t count = std::min(kExamples, series_.num_nodes);
  const std::int64_t which = node * count / series_.num_nodes;
  if (node != (2 * which + 1) * series_.num_nodes / (2 * count)) return;
  if (static_cast<std::int64_t>(result_.examples.size()) < count) result_.examples.resize(count);
  ForecastExample& example = result_.examples[which];
  if (series_.horizon <= kShortHorizon) {
    if (std::ssize(example.truth) == kTrackSteps) return;
    if (example.truth.empty()) example.first_step = window + series_.lags;
    example.truth.push_back(truth_at(window + series_.lags, node));
    example.forecast.push_back(forecast[0]);
  } else {
    // Window number `which` of `count` evenly spaced ones.
    if (window != first_window_ + (2 * which + 1) * windows_ / (2 * count)) return;
    example.first_step = window + series_.lags;
    for (std::int64_t t = 0; t < series_.lags; ++t) {
      example.past.push_back(truth_at(window + t, node));
    }
    for (std::int64_t h = 0; h < series_.horizon; ++h) {
      example.truth.push_back(truth_at(window + series_.lags + h, node));
      example.forecast.push_back(forecast[h]);
    }
  }
  example.node = series_.node_ids.empty() ? std::to_string(node) : series_.node_ids[node];
}

ForecastErrors ForecastCollector::errors() const {
  ForecastErrors result = result_;
  const auto mean = [](double sum, std::int64_t count) {
    return count > 0 ? sum / static_cast<double>(count) : kMissing;
  };
  for (const Sum& sum : step_) {
    result.mae_of_step.push_back(mean(sum.absolute, sum.count));
    result.rmse_of_step.push_back(std::sqrt(mean(sum.squares, sum.count)));
  }
  for (const Sum& sum : node_) {
    result.mae_of_node.push_back(mean(sum.absolute, sum.count));
    result.bias_of_node.push_back(mean(sum.difference, sum.count));
  }
  for (const Sum& sum : hour_) result.mae_of_hour.push_back(mean(sum.absolute, sum.count));
  std::erase_if(result.examples, [](const ForecastExample& e) { return e.truth.empty(); });
  return result;
}

}  // namespace mpssm::report
