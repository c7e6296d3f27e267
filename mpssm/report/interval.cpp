// SPDX-License-Identifier: MIT
#include "mpssm/report/interval.h"

#include <cmath>
#include <stdexcept>

namespace mpssm::report {
namespace {

/// Regularised incomplete beta function by its continued fraction (modified Lentz), which converges
/// fast for x < (a + 1) / (a + b + 2).
double incomplete_beta(double a, double b, double x) {
  if (x > (a + 1.0) / (a + b + 2.0)) return 1.0 - incomplete_beta(b, a, 1.0 - x);
  if (x <= 0.0) return 0.0;
  constexpr double kTiny = 1e-300;
  constexpr double kEnough = 1e-15;
  const auto not_zero = [](double value) { return std::abs(value) < kTiny ? kTiny : value; };
  double c = 1.0;
  double d = 1.0 / not_zero(1.0 - (a + b) * x / (a + 1.0));
  double fraction = d;
  for (int m = 1; m <= 10'000; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m));
    d = 1.0 / not_zero(1.0 + even * d);
    c = not_zero(1.0 + even / c);
    fraction *= c * d;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0));
    d = 1.0 / not_zero(1.0 + odd * d);
    c = not_zero(1.0 + odd / c);
    fraction *= c * d;
    if (std::abs(c * d - 1.0) < kEnough) break;
  }
  const double front = std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) +
                                a * std::log(x) + b * std::log1p(-x));
  return front * fraction / a;
}

/// P(T > t) for t >= 0.
double upper_tail(double t, double freedom) {
  return 0.5 * incomplete_beta(freedom / 2.0, 0.5, freedom / (freedom + t * t));
}

/// Square of the standard error of a mean.
double squared_error(const Mean& mean) {
  if (mean.count == 0) return 0.0;
  return mean.deviation * mean.deviation / static_cast<double>(mean.count);
}

}  // namespace

Mean mean_of(std::span<const double> values) {
  Mean mean{.count = std::ssize(values)};
  const auto count = static_cast<double>(values.size());
  for (const double value : values) mean.value += value;
  mean.value /= count;
  for (const double value : values) mean.deviation += (value - mean.value) * (value - mean.value);
  mean.deviation = values.size() > 1 ? std::sqrt(mean.deviation / (count - 1.0)) : 0.0;
  return mean;
}

double student_t_quantile(double p, double freedom) {
  if (!(p > 0.0 && p < 1.0)) throw std::invalid_argument("student_t_quantile: p is not in (0, 1)");
  if (!(freedom > 0.0)) throw std::invalid_argument("student_t_quantile: freedom is not positive");
  if (p < 0.5) return -student_t_quantile(1.0 - p, freedom);
  double low = 0.0;
  double high = 1.0;
  while (upper_tail(high, freedom) > 1.0 - p && high < 1e300) high *= 2.0;
  for (int i = 0; i < 200 && low < high; ++i) {
    const double middle = 0.5 * (low + high);
    if (middle == low || middle == high) break;
    (upper_tail(middle, freedom) > 1.0 - p ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

Difference difference(const Mean& ours, const Mean& theirs) {
  double variance = 0.0;
  double of_freedom = 0.0;
  for (const Mean& side : {ours, theirs}) {
    if (side.count == 0) continue;
    if (side.count < 2) throw std::invalid_argument("difference: one run says nothing of others");
    const double squared = squared_error(side);
    variance += squared;
    of_freedom += squared * squared / static_cast<double>(side.count - 1);
  }
  const double value = ours.value - theirs.value;
  if (variance == 0.0) return {.value = value, .low = value, .high = value};
  constexpr double kUpper = 0.975;
  const double width =
      student_t_quantile(kUpper, variance * variance / of_freedom) * std::sqrt(variance);
  return {.value = value, .low = value - width, .high = value + width};
}

}  // namespace mpssm::report
