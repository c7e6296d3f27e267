// SPDX-License-Identifier: MIT
#include "mpssm/report/regression.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

namespace mpssm::report {
namespace {

constexpr int kErrorBins = 31;  // odd: the middle one is around zero

void fill_error_histogram(const NumberTable& table, Regression& result) {
  double widest = 0.0;
  for (std::size_t i = 0; i < table.truth.size(); ++i) {
    widest = std::max(widest, std::abs(table.predicted[i] - table.truth[i]));
  }
  if (!(widest > 0.0) || !std::isfinite(widest)) return;
  const double step = 2.0 * widest / kErrorBins;
  result.error_count.assign(kErrorBins, 0.0);
  for (int bin = 0; bin < kErrorBins; ++bin) {
    result.error_centre.push_back((bin - kErrorBins / 2) * step);
  }
  for (std::size_t i = 0; i < table.truth.size(); ++i) {
    const double place = (table.predicted[i] - table.truth[i] + widest) / step;
    ++result.error_count[std::clamp(static_cast<int>(place), 0, kErrorBins - 1)];
  }
}

}  // namespace

Regression regression_of(const NumberTable& table) {
  const std::size_t n = table.truth.size();
  if (table.id.size() != n || table.predicted.size() != n) {
    throw std::invalid_argument("regression_of: expected columns of one size");
  }
  Regression result{.name = table.name, .count = static_cast<std::int64_t>(n)};
  const double count = static_cast<double>(std::max<std::size_t>(n, 1));
  const double mean = std::accumulate(table.truth.begin(), table.truth.end(), 0.0) / count;
  double squares = 0.0, spread = 0.0;
  for (std::size_t i = 0; i < n; ++i) {
    const double error = table.predicted[i] - table.truth[i];
    result.mae += std::abs(error) / count;
    result.bias += error / count;
    squares += error * error;
    spread += (table.truth[i] - mean) * (table.truth[i] - mean);
  }
  result.rmse = std::sqrt(squares / count);
  result.r2 = spread > 0.0 ? 1.0 - squares / spread : std::numeric_limits<double>::quiet_NaN();
  const std::size_t shown = std::min(n, kMaxScatter);
  for (std::size_t k = 0; k < shown; ++k) {
    const std::size_t i = k * n / shown;
    result.truth.push_back(table.truth[i]);
    result.predicted.push_back(table.predicted[i]);
  }
  fill_error_histogram(table, result);
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::abs(table.predicted[a] - table.truth[a]) >
           std::abs(table.predicted[b] - table.truth[b]);
  });
  order.resize(std::min(n, kMaxNumberErrors));
  for (const std::size_t i : order) {
    result.worst.push_back({table.id[i], table.truth[i], table.predicted[i]});
  }
  return result;
}

}  // namespace mpssm::report
