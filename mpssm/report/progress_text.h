// SPDX-License-Identifier: MIT
// How a training goes, as one line that fits a terminal.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace mpssm::report {

/// "12 s", "3 min 20 s", "2 h 5 min"
std::string duration(double seconds);

/// What a terminal can show.
struct TerminalStyle {
  std::size_t width = 80;  ///< columns; 0: no limit
  bool colours = false;
  bool blocks = true;  ///< characters of eight heights (UTF-8); else ASCII
};

/// By what the environment says: no colours with NO_COLOR (not empty) or on a dumb terminal,
/// ASCII unless the locale is UTF-8.
TerminalStyle terminal_style(std::size_t width);

struct ProgressText {
  std::int64_t step = 0;
  std::int64_t num_steps = 0;
  double loss = 0.0;
  std::string metric = {};          ///< its title
  std::vector<double> values = {};  ///< of the metric on validation so far; may hold NaN
  double best = 0.0;
  double seconds = 0.0;
  double seconds_left = 0.0;
};

/// "step 120/300  loss 0.3120  val AUC 0.8710  best 0.8731  <sparkline>  12 s, 18 s left". What
/// does not fit is left out: first the sparkline shrinks, then it goes, then best, time and loss.
std::string progress_text(const ProgressText& progress, const TerminalStyle& style);

/// `values` as `width` characters of eight heights, from the least to the largest of them; each
/// stands for the last value of its stretch. Empty without two finite values.
std::string sparkline(std::span<const double> values, std::size_t width, bool blocks);

}  // namespace mpssm::report
