// SPDX-License-Identifier: MIT
// A line for each node and step ahead, by least absolute errors. Private to task/.
#pragma once

#include <cstdint>

#include "mpssm/task/ridge_line.h"

namespace mpssm::task {

/// Fitted to the windows [0, fit_end) by reweighted least squares; the calendar plays no part.
/// Forecasts for the windows [begin, end): [B, N, H]. The same bits for any number of threads.
at::Tensor forecasts_by_node_lines(const LineSeries& series, std::int64_t fit_end,
                                   std::int64_t begin, std::int64_t end);

}  // namespace mpssm::task
