// SPDX-License-Identifier: MIT
// The parts of a picture as strings; whoever draws puts them in order.
#include "mpssm/report/svg.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <fmt/core.h>
#include <vector>

#include "mpssm/base/utf8.h"
#include "mpssm/report/picture_kind.h"

namespace mpssm::report::svg {
namespace {

constexpr double kLetterWidth = 0.62;  // over the font size
constexpr std::string_view kEllipsis = "\u2026";

/// Bytes of the character that `text` starts with, 0 if XML could not hold it.
std::size_t character_size(std::string_view text) {
  const std::size_t size = base::utf8_size(text);
  const bool is_control = size == 1 && static_cast<unsigned char>(text[0]) < 0x20;
  const bool is_no_character = text.starts_with("\xEF\xBF\xBE") || text.starts_with("\xEF\xBF\xBF");
  return is_control || is_no_character ? 0 : size;
}

// Lines of whole words where they fit; the last line has the rest, cut if it is too long.
std::vector<std::string> broken(std::string_view text, double width, double font_size,
                                std::size_t max_lines) {
  std::vector<std::string> lines;
  while (text_width(text, font_size) > width && lines.size() + 1 < max_lines) {
    std::size_t end = shortened(text, width, font_size).size() - kEllipsis.size();
    const std::size_t space = text.rfind(' ', end);
    if (space != std::string_view::npos && space > 0) end = space;
    if (end == 0) break;
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
    if (text.starts_with(' ')) text.remove_prefix(1);
  }
  lines.push_back(shortened(text, width, font_size));
  return lines;
}

}  // namespace

std::string number(double value) {
  char digits[32];
  const auto end =
      std::to_chars(digits, digits + sizeof(digits), std::round(value * 1000.0) / 1000.0);
  return {digits, end.ptr};
}

std::string point(double x, double y) {
  return number(std::round(x * 10.0) / 10.0) + " " + number(std::round(y * 10.0) / 10.0);
}

std::string escaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t size = character_size(text);
    switch (text.front()) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += size == 0 ? " " : text.substr(0, size);
    }
    text.remove_prefix(std::max<std::size_t>(size, 1));
  }
  return out;
}

std::string marked_text(double x, double y, std::string_view attributes, std::string_view markup) {
  return fmt::format("<text x=\"{}\" y=\"{}\"{}>{}</text>\n", number(x), number(y), attributes,
                     markup);
}

std::string text(double x, double y, std::string_view attributes, std::string_view content) {
  return marked_text(x, y, attributes, escaped(content));
}

std::string rectangle(double x, double y, double width, double height, std::string_view colour) {
  return fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>\n",
                     number(x), number(y), number(width), number(height), colour);
}

// Attributes rather than a style sheet, which would leak into a page that holds the picture.
std::string opening(double width, double height, std::string_view title) {
  return fmt::format(
      "{} xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" role=\"img\" "
      "font-family=\"system-ui,Helvetica,Arial,sans-serif\" font-size=\"14\" fill=\"#3b4048\">\n"
      "<title>{}</title>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
      kPictureMark.bytes, number(width), number(height), escaped(title));
}

std::string heading(double x, double width, std::string_view title) {
  if (title.empty()) return "";
  const double bold = 1.1;
  const double size = std::floor(std::clamp(width / (bold * text_width(title, 1.0)), 13.0, 19.0));
  constexpr std::size_t kMaxLines = 3;
  constexpr double kLine = 16.0;
  const std::vector<std::string> lines = broken(title, width, bold * size, kMaxLines);
  const auto more = static_cast<double>(lines.size() - 1);
  double y = lines.size() < kMaxLines ? 36.0 - kLine * more / 2.0 : 16.0;
  std::string out;
  for (const std::string& line : lines) {
    out += text(x, y, " font-size=\"" + number(size) + "\" font-weight=\"600\"", line);
    y += kLine;
  }
  return out;
}

double text_width(std::string_view text, double font_size) {
  const auto letters = std::count_if(text.begin(), text.end(), base::starts_character);
  return kLetterWidth * font_size * static_cast<double>(letters);
}

std::string shortened(std::string_view text, double width, double font_size) {
  if (text_width(text, font_size) <= width) return std::string(text);
  double letters = std::floor(width / (kLetterWidth * font_size)) - 1.0;  // one for the ellipsis
  const auto end = std::find_if(text.begin(), text.end(), [&](char c) {
    return base::starts_character(c) && letters-- < 1.0;
  });
  return std::string(text.begin(), end) + std::string(kEllipsis);
}

std::string cell_runs(std::int64_t rows, std::int64_t columns, std::span<const std::uint8_t> level,
                      std::span<const std::string_view> colours) {
  std::vector<std::string> paths(colours.size());
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto line = level.begin() + row * columns;
    for (std::int64_t begin = 0; begin < columns;) {
      std::int64_t end = begin + 1;
      while (end < columns && line[end] == line[begin]) ++end;
      paths[line[begin]] += fmt::format("M{} {}h{}", begin, row, end - begin);
      begin = end;
    }
  }
  const auto longest = std::max_element(
      paths.begin(), paths.end(), [](const auto& a, const auto& b) { return a.size() < b.size(); });
  longest->clear();
  std::string out = rectangle(0, -0.5, static_cast<double>(columns), static_cast<double>(rows),
                              colours[longest - paths.begin()]);
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (paths[i].empty()) continue;
    out += fmt::format("<path stroke=\"{}\" d=\"{}\"/>\n", colours[i], paths[i]);
  }
  return out;
}

}  // namespace mpssm::report::svg
