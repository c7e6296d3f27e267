// SPDX-License-Identifier: MIT
// A series as networks and lines see it: missing readings filled in and marked, deviations from the
// mean of the period, calendar. Private to task/.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "mpssm/data/dataset.h"
#include "mpssm/task/preprocessing.h"
#include "mpssm/task/ridge_line.h"
#include "mpssm/task/series_options.h"

namespace mpssm::task {

struct SeriesView {
  SeriesView(const data::SeriesData& data, const SeriesOptions& options, std::int64_t train_windows,
             const Preprocessing* learned);

  /// [T, N, F]: the value; other features; time of day and its harmonics (midnight is no jump for
  /// these); 1 where the reading is missing; sines and cosines of the period.
  at::Tensor inputs(const data::SeriesData& data, const SeriesOptions& options) const;

  at::Tensor measured;  ///< [T, N], NaN: missing
  at::Tensor base;      ///< [T + horizon, N] what forecasts are added to; undefined: nothing
  Preprocessing learned;

  /// What a line sees; its forecasts are added to `base`, too.
  LineSeries line;

  /// Whether outputs are on another scale than the readings.
  bool is_scaled() const { return learned.scale != 1.0 || learned.mean != 0.0; }
  std::int64_t bytes() const;
};

/// [T, 2 k]: sines and cosines of the place in the period, once to k times around.
at::Tensor harmonics_of(const data::SeriesData& data, std::int64_t count);
/// [T, N], NaN: missing.
at::Tensor readings_of(const data::SeriesData& data);

}  // namespace mpssm::task
