// SPDX-License-Identifier: MIT
// A matrix as an SVG picture: one colour per entry, row 0 on top.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace mpssm::report {

struct HeatMap {
  std::string title;
  std::string row_label;     ///< of the vertical axis, e.g. "receiving node"
  std::string column_label;  ///< of the horizontal axis
  std::string value_label;   ///< of the colour bar
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::span<const double> values = {};  ///< [rows * columns], row by row
  bool log_scale = false;
};

/// Rows or columns beyond this number are put together.
inline constexpr std::int64_t kMaxHeatMapBins = 128;

/// The matrix with numbered rows and columns and a colour bar. More than kMaxHeatMapBins rows
/// (columns) become that many bins of neighbours, whose sizes differ by one at most; a bin has the
/// mean of its values, also on a logarithmic scale, and is not finite if one of them is not; a line
/// below the picture says so.
/// NaN and infinities have a colour of their own, and so have values that are not positive on a
/// logarithmic scale; the legend names them where they occur. Some 10 bytes per run of bins of one
/// colour. Throws std::invalid_argument if the size is not rows * columns, or the matrix is empty.
std::string heat_map_svg(const HeatMap& map);

}  // namespace mpssm::report
