// SPDX-License-Identifier: MIT
// Forecasts that any model has to beat: zero, the last value, the historical average, lines.
// Private to task/.
#pragma once

#include <vector>

#include "mpssm/task/problem.h"

namespace mpssm::task {

/// Errors over all steps (mae, mse, rmse, mape), and "mae_3", "rmse_3", "mape_3" ... at steps 3, 6
/// and 12 of longer horizons. Of 200 numbers or fewer, if squared errors count, also "mse_low" and
/// "mse_high", the interval that drawing them anew gives. forecast, truth: [B, N, H]; truth NaN:
/// left out.
Metrics forecast_metrics(const torch::Tensor& forecast, const torch::Tensor& truth,
                         bool loss_is_mae);

/// On the test windows, all fitted to the training part. Where readings may be missing, the last
/// value is the last observed one, however long ago, and lines see it in their place. With a
/// period: the historical average (per node and place of the period) and, for absolute errors, a
/// line per node and step on deviations from it, for squared ones a line that also sees three
/// harmonics of the period. The line is ridge_line, the same for all nodes.
std::vector<Reference> forecast_references(const data::SeriesData& data,
                                           const data::WindowSplit& split, bool loss_is_mae);

}  // namespace mpssm::task
