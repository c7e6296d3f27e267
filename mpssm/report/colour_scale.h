// SPDX-License-Identifier: MIT
// Private to report/: which colour a value has in the SVG pictures, and the bar that tells it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mpssm/report/axis.h"

namespace mpssm::report::svg {

inline constexpr int kNumColours = 10;
/// Light to dark in equal steps of perceived lightness, from sand over red to violet.
inline constexpr std::string_view kSequential[kNumColours] = {
    "#faf3e5", "#fece9a", "#ffa56b", "#fa7751", "#e54e58",
    "#c42e64", "#9a1d6b", "#6d1a65", "#411a50", "#1d162a"};

/// Values to colours, linear or logarithmic from the least to the largest.
class ColourScale {
 public:
  ColourScale(std::span<const double> values, bool log);

  /// All colours, light to dark, then those of the values that have no place on the scale.
  static std::span<const std::string_view> colours();
  std::uint8_t level(double value) const;  ///< index into colours()
  std::string_view colour(double value) const { return colours()[level(value)]; }

  /// A vertical bar with ticks, label and the names of the special colours in use.
  std::string bar(double x, double y, double height, std::string_view label) const;
  double bar_width() const;

 private:
  struct Special {
    std::uint8_t level;
    std::string_view name;
  };
  std::vector<Special> specials() const;

  Axis axis_;
  std::vector<Tick> ticks_;
  bool has_zero_ = false;
  bool has_negative_ = false;
  bool has_infinite_ = false;  // or NaN
};

}  // namespace mpssm::report::svg
