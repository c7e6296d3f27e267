// SPDX-License-Identifier: MIT
// Private to report/: what all SVG pictures are made of: numbers, text, rectangles, runs of cells.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace mpssm::report::svg {

inline constexpr std::string_view kGrey = "#9aa0a8";

/// Three decimals at most.
std::string number(double value);
/// "x y" with one decimal, for the long lists of a path.
std::string point(double x, double y);
/// Safe as content and as an attribute: no control character, no broken UTF-8.
std::string escaped(std::string_view text);

/// `attributes` is empty or starts with a space.
std::string text(double x, double y, std::string_view attributes, std::string_view content);
/// Like text(), of content that may hold tags and is written as it is.
std::string marked_text(double x, double y, std::string_view attributes, std::string_view markup);
std::string rectangle(double x, double y, double width, double height, std::string_view colour);

/// The opening tag, the title for screen readers, a white background. The text is 14 units high.
std::string opening(double width, double height, std::string_view title);
/// The title at most `width` wide, in the 60 units at the top of a picture: one line, smaller if
/// long, then up to three lines, and cut if it is longer still.
std::string heading(double x, double width, std::string_view title);

/// A generous guess: fonts differ.
double text_width(std::string_view text, double font_size = 14.0);
/// `text`, or its beginning and an ellipsis if it is wider than `width`.
std::string shortened(std::string_view text, double width, double font_size = 14.0);

/// A table of levels in units of cells, row i around the line y = i. Runs of one level in a row are
/// one stroke, a level is one path; the level with the longest path becomes the background.
std::string cell_runs(std::int64_t rows, std::int64_t columns, std::span<const std::uint8_t> level,
                      std::span<const std::string_view> colours);

}  // namespace mpssm::report::svg
