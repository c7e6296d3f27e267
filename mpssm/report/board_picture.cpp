// SPDX-License-Identifier: MIT
// Every panel is a table of colour levels; a level is one path, a run of cells in a row one stroke.
#include "mpssm/report/board_picture.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/core.h>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "mpssm/report/colour_scale.h"
#include "mpssm/report/svg.h"

namespace mpssm::report {
namespace {

using Colours = std::span<const std::string_view>;

/// The last colour is for what is not a number.
constexpr int kLevels = svg::kNumColours;
constexpr auto kProbability = [] {
  std::array<std::string_view, kLevels + 1> colours;
  std::copy_n(svg::kSequential, kLevels, colours.begin());
  colours.back() = svg::kGrey;
  return colours;
}();

/// Numbers 0 to 8, then hidden.
constexpr std::string_view kNumbers[] = {"#ebf2fb", "#c2dfff", "#93c5ff", "#6caaf5", "#4f8fdf",
                                         "#3b75c2", "#305d9e", "#294775", "#23324a", svg::kGrey};
constexpr std::uint8_t kHidden = 9;

constexpr std::string_view kMines[] = {kProbability[0], kProbability[kLevels - 1]};

constexpr double kMargin = 24.0;
constexpr double kPanel = 400.0;  // the longer side of a board, or a little less
constexpr double kGap = 24.0;
constexpr double kWidth = 2 * kMargin + 3 * kPanel + 2 * kGap;
constexpr double kTop = 96.0;  // of the panels, below two lines of titles
constexpr double kLegendGap = 18.0;
constexpr double kSwatch = 14.0;
constexpr double kFooter = 70.0;     // legends below the panels
constexpr double kDigitCell = 12.0;  // smaller cells have neither digits nor lines between them

struct Geometry {
  std::int64_t rows;
  std::int64_t columns;
  double cell;
  double height() const { return static_cast<double>(rows) * cell; }
  double width() const { return static_cast<double>(columns) * cell; }
  double left(int panel) const {
    return kMargin + panel * (kPanel + kGap) + (kPanel - width()) / 2;
  }
};

/// Whole units a cell, so that all are equally large on the screen, unless that wastes much.
Geometry geometry(const BoardPicture& picture) {
  const double exact = kPanel / static_cast<double>(std::max(picture.rows, picture.columns));
  const double whole = std::floor(exact);
  return {picture.rows, picture.columns, whole > 0.9 * exact ? whole : exact};
}

void check(const BoardPicture& picture) {
  const auto fail = [](const std::string& what) {
    throw std::invalid_argument("board_svg: expected " + what);
  };
  if (picture.rows < 1 || picture.columns < 1) {
    fail(fmt::format("a board of at least one cell, got {} x {}", picture.rows, picture.columns));
  }
  const auto check_size = [&](const char* name, std::size_t size) {
    const std::int64_t cells = picture.rows * picture.columns;
    if (static_cast<std::int64_t>(size) == cells) return;
    fail(fmt::format("{} of size {}, got {}", name, cells, size));
  };
  check_size("shown", picture.shown.size());
  check_size("mine", picture.mine.size());
  check_size("probability", picture.probability.size());
}

std::uint8_t number_level(std::int8_t shown) {
  return shown < 0 ? kHidden : static_cast<std::uint8_t>(std::min<int>(shown, kHidden - 1));
}

std::uint8_t probability_level(float probability) {
  if (std::isnan(probability)) return kLevels;
  return static_cast<std::uint8_t>(std::clamp(probability * kLevels, 0.0f, kLevels - 0.5f));
}

template <typename T, typename Level>
std::vector<std::uint8_t> levels(std::span<const T> values, const Level& level) {
  std::vector<std::uint8_t> out(values.size());
  std::transform(values.begin(), values.end(), out.begin(), level);
  return out;
}

/// Lines between the cells, in units of cells.
std::string lines(const Geometry& board) {
  std::string path;
  for (std::int64_t row = 1; row < board.rows; ++row) {
    path += fmt::format("M0 {}h{}", svg::number(static_cast<double>(row) - 0.5), board.columns);
  }
  for (std::int64_t column = 1; column < board.columns; ++column) {
    path += fmt::format("M{} -.5v{}", column, board.rows);
  }
  return fmt::format("<path stroke=\"#fff\" stroke-width=\"{}\" d=\"{}\"/>\n",
                     svg::number(1.0 / board.cell), path);
}

std::string panel(const Geometry& board, int index, std::string_view title,
                  const std::vector<std::uint8_t>& level, Colours colours) {
  const double left = board.left(index);
  std::string out = svg::text(left + board.width() / 2, kTop - 14,
                              " font-size=\"17\" text-anchor=\"middle\"", title);
  // Strokes run along the middle of a row, hence half a cell down.
  out += fmt::format(
      "<g shape-rendering=\"crispEdges\" transform=\"translate({} {}) scale({})\">\n"
      "{}",
      svg::number(left), svg::number(kTop + board.cell / 2), svg::number(board.cell),
      svg::cell_runs(board.rows, board.columns, level, colours));
  if (board.cell >= kDigitCell) out += lines(board);
  return out + "</g>\n";
}

std::string digits(const Geometry& board, const std::vector<std::uint8_t>& level) {
  std::string out =
      "<g text-anchor=\"middle\" font-size=\"" + svg::number(0.6 * board.cell) + "\">\n";
  for (std::int64_t row = 0; row < board.rows; ++row) {
    for (std::int64_t column = 0; column < board.columns; ++column) {
      const int value = level[row * board.columns + column];
      if (value == 0 || value == kHidden) continue;
      out += svg::text(board.left(0) + (static_cast<double>(column) + 0.5) * board.cell,
                       kTop + (static_cast<double>(row) + 0.71) * board.cell,
                       value >= 4 ? " fill=\"#fff\"" : "", std::to_string(value));
    }
  }
  return out + "</g>\n";
}

struct Swatch {
  std::string_view colour;
  std::string_view label;
};

/// Coloured squares with labels, centred below a panel.
std::string legend(const Geometry& board, int index, std::span<const Swatch> swatches) {
  constexpr double kLetter = 7.5;  // about the width of one
  constexpr double kSpace = 7.0;
  const auto width = [](const Swatch& swatch) {
    return kSwatch + 5 + kLetter * static_cast<double>(swatch.label.size()) + kSpace;
  };
  double total = -kSpace;
  for (const Swatch& swatch : swatches) total += width(swatch);
  double x = board.left(index) + (board.width() - total) / 2;
  const double y = kTop + board.height() + kLegendGap;
  std::string out;
  for (const Swatch& swatch : swatches) {
    out += svg::rectangle(x, y, kSwatch, kSwatch, swatch.colour);
    out += svg::text(x + kSwatch + 5, y + kSwatch - 2.5, "", swatch.label);
    x += width(swatch);
  }
  return out;
}

std::string number_legend(const Geometry& board) {
  constexpr std::string_view kLabels[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "hidden"};
  std::vector<Swatch> swatches;
  for (int i = 0; i <= kHidden; ++i) swatches.push_back({kNumbers[i], kLabels[i]});
  return legend(board, 0, swatches);
}

std::string scale_bar(const Geometry& board) {
  constexpr double kStep = 36.0;
  const double left = board.left(2) + (board.width() - kLevels * kStep) / 2;
  const double top = kTop + board.height() + kLegendGap;
  std::string out;
  for (int i = 0; i < kLevels; ++i) {
    out += svg::rectangle(left + i * kStep, top, kStep, kSwatch, kProbability[i]);
  }
  for (int i = 0; i <= kLevels; i += 2) {
    out += svg::text(left + i * kStep, top + kSwatch + 17, " text-anchor=\"middle\"",
                     svg::number(i / 10.0));
  }
  return out;
}

}  // namespace

std::string board_svg(const BoardPicture& picture) {
  check(picture);
  const Geometry board = geometry(picture);
  const std::vector<std::uint8_t> numbers = levels(picture.shown, number_level);
  const auto mine_level = [](std::uint8_t mine) { return mine != 0 ? 1 : 0; };
  std::string out = svg::opening(kWidth, kTop + board.height() + kFooter, picture.title);
  out += svg::text(kMargin, 40, " font-size=\"22\" font-weight=\"600\"", picture.title);
  out += panel(board, 0, "What the player sees", numbers, kNumbers);
  if (board.cell >= kDigitCell) out += digits(board, numbers);
  out += number_legend(board);
  out += panel(board, 1, "The mines", levels(picture.mine, mine_level), kMines);
  out += legend(board, 1, std::vector<Swatch>{{kMines[0], "free"}, {kMines[1], "mine"}});
  out += panel(board, 2, "Predicted probability of a mine",
               levels(picture.probability, probability_level), kProbability);
  out += scale_bar(board);
  return out + "</svg>\n";
}

}  // namespace mpssm::report
