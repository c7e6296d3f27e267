// SPDX-License-Identifier: MIT
// What a table of forecasts says beside the series: errors by step ahead, by node, by hour, and
// some of the forecasts themselves.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "mpssm/data/dataset.h"

namespace mpssm::report {

/// Truth and forecast over the same steps.
struct ForecastExample {
  std::string node = {};
  std::int64_t first_step = 0;     ///< of the series
  std::vector<double> past = {};   ///< what the forecast saw, before the first step; may be empty
  std::vector<double> truth = {};  ///< NaN: missing
  std::vector<double> forecast = {};  ///< as many
};

struct ForecastErrors {
  std::int64_t windows = 0;
  std::int64_t horizon = 0;
  std::vector<double> mae_of_step = {};    ///< [horizon]
  std::vector<double> rmse_of_step = {};   ///< [horizon]
  std::vector<double> mae_of_node = {};    ///< [N]; NaN: nothing was measured
  std::vector<double> bias_of_node = {};   ///< [N] mean of forecast - truth
  std::vector<double> mae_of_hour = {};    ///< [24] by the time that is forecast; empty: no clock
  std::vector<std::string> node_ids = {};  ///< [N]; empty: 0, 1, 2, ...
  std::vector<double> truth = {};          ///< of some numbers, evenly spaced
  std::vector<double> forecast = {};       ///< of the same
  /// Evenly spaced over nodes and windows, none chosen. With a horizon of 1 or 2 consecutive
  /// forecasts one step ahead, else whole windows.
  std::vector<ForecastExample> examples = {};
};

/// Takes forecasts of the windows of `series` one by one; the series must outlive it. Missing
/// truths count nowhere.
class ForecastCollector {
 public:
  /// `windows`: how many will come, each with every node, in the order of the series.
  ForecastCollector(const data::SeriesData& series, std::int64_t windows);
  void add(std::int64_t window, std::int64_t node, std::span<const double> forecast);
  ForecastErrors errors() const;

 private:
  double truth_at(std::int64_t step, std::int64_t node) const;  // NaN: missing
  void take_example(std::int64_t window, std::int64_t node, std::span<const double> forecast);

  struct Sum {
    double absolute = 0.0;
    double squares = 0.0;
    double difference = 0.0;
    std::int64_t count = 0;
    void add(double error);
  };
  const data::SeriesData& series_;
  std::int64_t windows_;
  std::int64_t first_window_ = -1;
  std::int64_t taken_ = 0;  // numbers so far
  std::vector<Sum> step_, node_, hour_;
  ForecastErrors result_;
};

}  // namespace mpssm::report
