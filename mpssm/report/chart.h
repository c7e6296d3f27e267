// SPDX-License-Identifier: MIT
// Private to report/: charts of a page. They take their colours from the page's style sheet, so
// that one drawing serves light, dark and paper.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mpssm::report::page {

enum class Mark { kLine, kDashed, kDots, kBars };

/// Values that are not finite are gaps.
struct Series {
  std::string name = {};  ///< in the legend; empty: not there
  Mark mark = Mark::kLine;
  std::vector<double> x = {};
  std::vector<double> y = {};
  int colour = 0;  ///< of the style sheet, 0 to 7; -1: grey
};

struct Chart {
  std::string title;
  std::string x_label = {};
  std::string y_label = {};
  std::vector<Series> series = {};
  bool log_y = false;
  std::optional<std::pair<double, double>> x_range = {};  ///< else what the values need
  std::optional<std::pair<double, double>> y_range = {};
  std::optional<double> marked_x = {};  ///< an upright line
  std::string marked_label = {};
  std::string note = {};  ///< below the chart, what it says in a sentence
};

/// A <figure> with a drawing of some 460 units, its legend and its note. Long lines are thinned out
/// to what can be seen (extremes stay).
std::string chart_html(const Chart& chart);

}  // namespace mpssm::report::page
