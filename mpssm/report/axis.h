// SPDX-License-Identifier: MIT
// Private to report/: linear and logarithmic axes of the SVG pictures, and their ticks.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace mpssm::report::svg {

/// A stretch of values. On a logarithmic axis `low` and `high` are decimal exponents.
struct Axis {
  double low = 0.0;
  double high = 1.0;
  bool log = false;

  /// Whether the value has a place on such an axis: finite, and positive on a logarithmic one.
  bool has(double value) const;
  /// 0 at the low end, 1 at the high end, and never beyond.
  double fraction(double value) const;
};

/// The stretch of the values that have a place on the axis, longer by `margin` of it at both ends.
/// A single value comes to the middle; without values it is some stretch.
Axis fit_axis(std::span<const double> values, bool log, double margin);

struct Tick {
  double fraction = 0.0;
  std::string label;   ///< markup
  double width = 0.0;  ///< of the label, about
};

/// Round values 1, 2, 5 apart, or powers of ten where a logarithmic axis spans some; about `most`.
std::vector<Tick> ticks(const Axis& axis, int most);
double widest(std::span<const Tick> ticks);

}  // namespace mpssm::report::svg
