// SPDX-License-Identifier: MIT
// How far two means are apart, and how sure that is.
#pragma once

#include <cstdint>
#include <span>

namespace mpssm::report {

/// Mean and sample deviation of `count` runs; count 0: a number taken as exact.
struct Mean {
  double value = 0.0;
  double deviation = 0.0;
  std::int64_t count = 0;
};

/// Of one value or more; the deviation of one is 0.
Mean mean_of(std::span<const double> values);

/// A difference with its 95 % interval.
struct Difference {
  double value = 0.0;
  double low = 0.0;
  double high = 0.0;

  bool holds_zero() const { return low <= 0.0 && high >= 0.0; }
};

/// The p-quantile of Student's t, p in (0, 1); `freedom` > 0 need not be whole.
/// Throws std::invalid_argument otherwise.
double student_t_quantile(double p, double freedom);

/// ours - theirs by Welch's interval: runs are independent, the deviations need not be equal.
/// Throws std::invalid_argument unless each side has at least two runs or is exact.
Difference difference(const Mean& ours, const Mean& theirs);

}  // namespace mpssm::report
