// SPDX-License-Identifier: MIT
#include "mpssm/task/node_lines.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include <torch/types.h>

#include "mpssm/ops/runtime.h"

namespace mpssm::task {
namespace {

/// The windows of one node, row by row: its lags and a 1.
struct NodeWindows {
  std::int64_t columns = 0;
  std::vector<float> rows = {};

  const float* row(std::int64_t window) const { return rows.data() + window * columns; }
};

NodeWindows windows_of_node(const LineSeries& series, std::int64_t node, std::int64_t count) {
  NodeWindows windows{.columns = series.lags + 1};
  windows.rows.reserve(static_cast<std::size_t>(count * windows.columns));
  const float* seen = series.seen.data_ptr<float>();
  const std::int64_t n = series.seen.size(1);
  for (std::int64_t w = 0; w < count; ++w) {
    for (std::int64_t lag = 0; lag < series.lags; ++lag) {
      windows.rows.push_back(seen[(w + lag) * n + node]);
    }
    windows.rows.push_back(1.0F);
  }
  return windows;
}

double value_at(const std::vector<double>& line, const float* row) {
  double sum = 0.0;
  for (std::size_t c = 0; c < line.size(); ++c) sum += line[c] * row[c];
  return sum;
}

/// One round: the line of least squares, each window by one over its error so far. `line` empty:
/// all windows count the same.
std::vector<double> reweighted(const NodeWindows& windows, const std::vector<float>& truth,
                               const std::vector<double>& line) {
  constexpr double kLeastError = 0.05;
  constexpr double kPenalty = 1e-6;  // a node that never changes has a line, too
  const std::int64_t size = windows.columns;
  std::vector<double> gram(static_cast<std::size_t>(size * size), 0.0);
  std::vector<double> right(static_cast<std::size_t>(size), 0.0);
  double count = 0.0;
  for (std::int64_t w = 0; w < std::ssize(truth); ++w) {
    if (std::isnan(truth[w])) continue;
    const float* row = windows.row(w);
    const double weight =
        line.empty() ? 1.0 : 1.0 / std::max(std::abs(truth[w] - value_at(line, row)), kLeastError);
    for (std::int64_t i = 0; i < size; ++i) {
      const double left = weight * row[i];
      for (std::int64_t j = 0; j <= i; ++j) gram[i * size + j] += left * row[j];
      right[i] += left * truth[w];
    }
    count += weight;
  }
  for (std::int64_t i = 0; i < size; ++i) {
    gram[i * size + i] += kPenalty * std::max(count, 1.0);
    for (std::int64_t j = 0; j < i; ++j) gram[j * size + i] = gram[i * size + j];
  }
  solve_in_place(gram.data(), right.data(), size);
  return right;
}

void forecast_node(const LineSeries& series, std::int64_t node, std::int64_t fit_end,
                   std::int64_t begin, std::int64_t end, float* forecasts) {
  constexpr int kFirstRounds = 15;
  constexpr int kRounds = 5;  // from the line of the step before
  const std::int64_t n = series.seen.size(1);
  const NodeWindows windows = windows_of_node(series, node, std::max(fit_end, end));
  std::vector<float> truth(static_cast<std::size_t>(fit_end));
  std::vector<double> line;
  for (std::int64_t h = 0; h < series.horizon; ++h) {
    for (std::int64_t w = 0; w < fit_end; ++w) {
      truth[w] = series.truth.data_ptr<float>()[(w + series.lags + h) * n + node];
    }
    const int rounds = h == 0 ? kFirstRounds : kRounds;
    for (int round = 0; round < rounds; ++round) line = reweighted(windows, truth, line);
    for (std::int64_t w = begin; w < end; ++w) {
      forecasts[((w - begin) * n + node) * series.horizon + h] =
          static_cast<float>(value_at(line, windows.row(w)));
    }
  }
}

}  // namespace

at::Tensor forecasts_by_node_lines(const LineSeries& series, std::int64_t fit_end,
                                   std::int64_t begin, std::int64_t end) {
  const std::int64_t n = series.seen.size(1);
  torch::Tensor forecasts = torch::empty({end - begin, n, series.horizon});
  std::atomic<std::int64_t> next = 0;
  ops::Threads().run([&](std::int64_t) {
    for (std::int64_t node = next++; node < n; node = next++) {
      forecast_node(series, node, fit_end, begin, end, forecasts.data_ptr<float>());
    }
  });
  return forecasts;
}

}  // namespace mpssm::task
