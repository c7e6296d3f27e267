// SPDX-License-Identifier: MIT
// Forecasts that any model has to beat: zero, the last value, the historical average, a line.
// Private to task/.
#pragma once

#include <optional>
#include <vector>

#include "mpssm/task/problem.h"

namespace mpssm::task {

/// Errors over all steps (mae, mse, rmse, mape), and "mae_3" ... at steps 3, 6 and 12 of longer
/// horizons. forecast, truth: [B, N, H].
Metrics forecast_metrics(const torch::Tensor& forecast, const torch::Tensor& truth,
                         std::optional<float> null_value, bool loss_is_mae);

/// Weights [H, lags + 1] of a ridge regression on the window's values and a constant, the same for
/// all nodes: its strength chosen on validation, then fitted to the windows [0, fit_end).
torch::Tensor ridge_line(const data::SeriesData& data, const data::WindowSplit& split,
                         std::int64_t fit_end, bool loss_is_mae);

/// On the test windows. Where values may be missing, the last value is the last observed one,
/// however long ago; the line takes them as they are stored. The historical average (per node and
/// time of the week, over the training period) needs a time of day. The line is ridge_line, fitted
/// to the training part.
std::vector<Reference> forecast_references(const data::SeriesData& data,
                                           const data::WindowSplit& split, bool loss_is_mae);

}  // namespace mpssm::task
