// SPDX-License-Identifier: MIT
// The parts of a picture as strings; whoever draws puts them in order.
#include "mpssm/report/svg.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <vector>

namespace mpssm::report::svg {
namespace {

constexpr double kLetterWidth = 0.62;  // over the font size
constexpr std::string_view kEllipsis = "\u2026";

/// Bytes of the character that `text` starts with, 0 if XML could not hold it.
std::size_t character_size(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x20) return 0;
  if (lead < 0x80) return 1;
  const std::size_t size = lead < 0xC0   ? 0
                           : lead < 0xE0 ? 2
                           : lead < 0xF0 ? 3
                           : lead < 0xF8 ? 4
                                         : 0;
  if (size == 0 || text.size() < size) return 0;
  std::uint32_t code = lead & (0xFFu >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0u) != 0x80u) return 0;
    code = code << 6 | (byte(i) & 0x3Fu);
  }
  constexpr std::uint32_t kLeast[] = {0x80, 0x800, 0x10000};  // by size; less is overlong
  const bool is_surrogate = code >= 0xD800 && code < 0xE000;
  const bool is_character = code < 0x110000 && code != 0xFFFE && code != 0xFFFF && !is_surrogate;
  return is_character && code >= kLeast[size - 2] ? size : 0;
}

/// All bytes of UTF-8 but those that continue a character.
bool starts_letter(char c) { return (static_cast<unsigned char>(c) & 0xC0u) != 0x80u; }

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
  return "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\"" + std::string(attributes) + ">" +
         std::string(markup) + "</text>\n";
}

std::string text(double x, double y, std::string_view attributes, std::string_view content) {
  return marked_text(x, y, attributes, escaped(content));
}

std::string rectangle(double x, double y, double width, double height, std::string_view colour) {
  return "<rect x=\"" + number(x) + "\" y=\"" + number(y) + "\" width=\"" + number(width) +
         "\" height=\"" + number(height) + "\" fill=\"" + std::string(colour) + "\"/>\n";
}

// Attributes rather than a style sheet, which would leak into a page that holds the picture.
std::string opening(double width, double height, std::string_view title) {
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + number(width) + " " +
         number(height) +
         "\" role=\"img\" font-family=\"system-ui,Helvetica,Arial,sans-serif\" "
         "font-size=\"14\" fill=\"#3b4048\">\n<title>" +
         escaped(title) + "</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n";
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
  const auto letters = std::count_if(text.begin(), text.end(), starts_letter);
  return kLetterWidth * font_size * static_cast<double>(letters);
}

std::string shortened(std::string_view text, double width, double font_size) {
  if (text_width(text, font_size) <= width) return std::string(text);
  double letters = std::floor(width / (kLetterWidth * font_size)) - 1.0;  // one for the ellipsis
  const auto end = std::find_if(text.begin(), text.end(),
                                [&](char c) { return starts_letter(c) && letters-- < 1.0; });
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
      paths[line[begin]] += "M" + std::to_string(begin) + " " + std::to_string(row) + "h" +
                            std::to_string(end - begin);
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
    out += "<path stroke=\"" + std::string(colours[i]) + "\" d=\"" + paths[i] + "\"/>\n";
  }
  return out;
}

}  // namespace mpssm::report::svg
