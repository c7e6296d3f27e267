// SPDX-License-Identifier: MIT
// A Minesweeper board as an SVG picture: what was shown, where the mines are, what was predicted.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace mpssm::report {

struct BoardPicture {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::span<const std::int8_t> shown;  ///< [cells] number of mines around, -1: hidden
  std::span<const std::uint8_t> mine;  ///< [cells]
  std::span<const float> probability;  ///< [cells] of being a mine
  std::string title;                   ///< e.g. "test ROC AUC 0.95"
};

/// Three panels side by side with titles and a colour scale, about 1300 units wide and as high as
/// the board asks for. Some 2 to 9 bytes per cell and panel; boards of large cells also get digits.
/// A probability of NaN is grey. Throws std::invalid_argument if a size is not rows * columns, or
/// the board is empty.
std::string board_svg(const BoardPicture& picture);

}  // namespace mpssm::report
