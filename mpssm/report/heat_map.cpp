// SPDX-License-Identifier: MIT
// The matrix is averaged into bins, the bins become levels of colour, the levels runs of cells.
#include "mpssm/report/heat_map.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "mpssm/report/colour_scale.h"
#include "mpssm/report/svg.h"

namespace mpssm::report {
namespace {

constexpr double kMargin = 24.0;
constexpr double kTop = 60.0;
constexpr double kLongSide = 440.0;   // of the matrix, about
constexpr double kShortSide = 130.0;  // at least
constexpr double kGap = 28.0;         // to the colour bar
constexpr double kFooter = 66.0;
constexpr double kNoteLine = 22.0;
constexpr double kMinHeight = 220.0;  // of the colour bar

void check(const HeatMap& map) {
  if (map.rows < 1 || map.columns < 1) {
    throw std::invalid_argument(
        fmt::format("heat_map_svg: expected a matrix of at least one entry, got {} x {}", map.rows,
                    map.columns));
  }
  // Divided rather than multiplied: the product may not fit.
  const auto size = static_cast<std::int64_t>(map.values.size());
  if (size % map.columns == 0 && size / map.columns == map.rows) return;
  throw std::invalid_argument(
      fmt::format("heat_map_svg: expected {} x {} values, got {}", map.rows, map.columns, size));
}

struct Bins {
  std::int64_t rows;
  std::int64_t columns;
  std::vector<double> mean;
};

/// First row (column) of a bin.
std::int64_t first_of(std::int64_t bin, std::int64_t bins, std::int64_t count) {
  return bin * count / bins;
}

double mean_of(const HeatMap& map, std::int64_t row_begin, std::int64_t row_end,
               std::int64_t column_begin, std::int64_t column_end) {
  const auto count = static_cast<double>((row_end - row_begin) * (column_end - column_begin));
  double mean = 0.0;
  for (std::int64_t row = row_begin; row < row_end; ++row) {
    for (std::int64_t column = column_begin; column < column_end; ++column) {
      mean += map.values[row * map.columns + column] / count;
    }
  }
  return mean;
}

Bins make_bins(const HeatMap& map) {
  Bins bins{std::min(map.rows, kMaxHeatMapBins), std::min(map.columns, kMaxHeatMapBins), {}};
  for (std::int64_t row = 0; row < bins.rows; ++row) {
    for (std::int64_t column = 0; column < bins.columns; ++column) {
      bins.mean.push_back(mean_of(map, first_of(row, bins.rows, map.rows),
                                  first_of(row + 1, bins.rows, map.rows),
                                  first_of(column, bins.columns, map.columns),
                                  first_of(column + 1, bins.columns, map.columns)));
    }
  }
  return bins;
}

/// Whole units, so that all cells are equally large on the screen and leave no seam.
double cell_size(double side, std::int64_t bins) {
  return std::max(1.0, std::round(side / static_cast<double>(bins)));
}

struct Geometry {
  double cell_width;
  double cell_height;
  double left;
  double width;
  double height;
};

/// Square entries, unless the matrix is very long.
Geometry geometry(const HeatMap& map, const Bins& bins) {
  const auto rows = static_cast<double>(map.rows);
  const auto columns = static_cast<double>(map.columns);
  const double unit = kLongSide / std::max(rows, columns);
  Geometry out{};
  out.cell_width = cell_size(std::max(unit * columns, kShortSide), bins.columns);
  out.cell_height = cell_size(std::max(unit * rows, kShortSide), bins.rows);
  out.width = out.cell_width * static_cast<double>(bins.columns);
  out.height = out.cell_height * static_cast<double>(bins.rows);
  out.left = kMargin + (map.row_label.empty() ? 0.0 : 26.0) + 8 +
             svg::text_width(std::to_string(map.rows - 1));
  return out;
}

/// The middle of a numbered row or column as a fraction of the side.
struct Index {
  std::int64_t number;
  double fraction;
};

/// Round numbers, some `space` units apart.
std::vector<Index> indices(std::int64_t count, double side, double space) {
  const double least = space / side * static_cast<double>(count);
  std::int64_t step = 1;
  for (std::int64_t power = 1; static_cast<double>(step) < least; power *= 10) {
    for (const int factor : {1, 2, 5}) {
      step = factor * power;
      if (static_cast<double>(step) >= least) break;
    }
  }
  std::vector<Index> out;
  for (std::int64_t i = 0; i < count; i += step) {
    out.push_back({i, (static_cast<double>(i) + 0.5) / static_cast<double>(count)});
  }
  return out;
}

std::string draw_axes(const HeatMap& map, const Geometry& place) {
  const double bottom = kTop + place.height;
  std::string out;
  for (const Index& row : indices(map.rows, place.height, 28)) {
    const double y = kTop + place.height * row.fraction;
    out += svg::rectangle(place.left - 5, y - 0.5, 4, 1, svg::kGrey);
    out += svg::text(place.left - 8, y + 5, " text-anchor=\"end\"", std::to_string(row.number));
  }
  const double letters = svg::text_width(std::to_string(map.columns - 1));
  for (const Index& column : indices(map.columns, place.width, letters + 16)) {
    const double x = place.left + place.width * column.fraction;
    out += svg::rectangle(x - 0.5, bottom + 1, 1, 4, svg::kGrey);
    out += svg::text(x, bottom + 21, " text-anchor=\"middle\"", std::to_string(column.number));
  }
  out += svg::text(place.left + place.width / 2, bottom + 46, " text-anchor=\"middle\"",
                   svg::shortened(map.column_label, place.width));
  const double x = kMargin + 12;
  const double y = kTop + place.height / 2;
  out += svg::text(x, y,
                   fmt::format(" text-anchor=\"middle\" transform=\"rotate(-90 {} {})\"",
                               svg::number(x), svg::number(y)),
                   svg::shortened(map.row_label, place.height));
  return out;
}

/// Rows (columns) of a bin.
std::string bin_text(std::int64_t count, std::int64_t bins) {
  const std::int64_t least = count / bins;
  if (count % bins == 0) return std::to_string(least);
  return fmt::format("{}-{}", least, least + 1);
}

/// Empty if each cell is one entry.
std::string bin_note(const HeatMap& map, const Bins& bins) {
  if (bins.rows == map.rows && bins.columns == map.columns) return "";
  return fmt::format("a cell is the mean of {} x {} entries", bin_text(map.rows, bins.rows),
                     bin_text(map.columns, bins.columns));
}

std::string draw_cells(const Bins& bins, const svg::ColourScale& scale, const Geometry& place) {
  std::vector<std::uint8_t> levels;
  for (const double value : bins.mean) levels.push_back(scale.level(value));
  // Strokes run along the middle of a row, hence half a cell down.
  return fmt::format(
      "<g shape-rendering=\"crispEdges\" transform=\"translate({} {}) scale({} {})\">\n"
      "{}</g>\n",
      svg::number(place.left), svg::number(kTop + place.cell_height / 2),
      svg::number(place.cell_width), svg::number(place.cell_height),
      svg::cell_runs(bins.rows, bins.columns, levels, svg::ColourScale::colours()));
}

}  // namespace

std::string heat_map_svg(const HeatMap& map) {
  check(map);
  const Bins bins = make_bins(map);
  const svg::ColourScale scale(bins.mean, map.log_scale);
  const Geometry place = geometry(map, bins);
  const double bar_height = std::max(place.height, kMinHeight);
  const double bar_left = place.left + place.width + kGap;
  const double width = bar_left + scale.bar_width() + kMargin;
  const std::string note = bin_note(map, bins);
  const double below = kFooter + (note.empty() ? 0.0 : kNoteLine);
  std::string out =
      svg::opening(width, kTop + std::max(place.height + below, bar_height + kMargin), map.title);
  out += svg::heading(kMargin, width - 2 * kMargin, map.title);
  out += draw_axes(map, place);
  out += draw_cells(bins, scale, place);
  out += scale.bar(bar_left, kTop, bar_height, map.value_label);
  if (!note.empty()) {
    out += svg::text(place.left + place.width / 2, kTop + place.height + 46 + kNoteLine,
                     " text-anchor=\"middle\"", note);
  }
  return out + "</svg>\n";
}

}  // namespace mpssm::report
