// SPDX-License-Identifier: MIT
// Curves are cut at their gaps, turned into pixels and thinned out there.
#include "mpssm/report/curve_picture.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <iterator>
#include <span>
#include <stdexcept>
#include <string_view>

#include "mpssm/report/axis.h"
#include "mpssm/report/svg.h"

namespace mpssm::report {
namespace {

/// Apart in lightness or hue for all common kinds of colour blindness, and all visible on white.
constexpr std::string_view kColours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                         "#3b4048", "#e69f00", "#56b4e9", "#882255"};

constexpr double kMargin = 24.0;
constexpr double kTop = 60.0;
constexpr double kPlotWidth = 600.0;
constexpr double kPlotHeight = 360.0;
constexpr double kBottom = kTop + kPlotHeight;
constexpr double kFooter = 66.0;  // ticks and label below the plot
constexpr double kLegendGap = 20.0;
constexpr double kLegendLine = 24.0;  // height
constexpr double kSample = 30.0;      // length of the line beside a name
constexpr double kMaxName = 260.0;
constexpr double kMarker = 6.5;
constexpr std::string_view kBandOpacity = ".22";
constexpr std::string_view kGridColour = "#e8eaee";
constexpr std::size_t kMaxPoints = 6000;  // in the whole picture, some 12 bytes each
constexpr std::size_t kMaxMarkers = 50;   // on a curve

struct Pixel {
  double x;
  double y;
};
using Line = std::vector<Pixel>;

struct Plot {
  svg::Axis x;
  svg::Axis y;
  std::vector<svg::Tick> x_ticks;
  std::vector<svg::Tick> y_ticks;
  double left = 0.0;

  Pixel at(double value_x, double value_y) const {
    return {left + kPlotWidth * x.fraction(value_x), kBottom - kPlotHeight * y.fraction(value_y)};
  }
};

void check_size(const std::string& name, std::size_t expected, std::size_t got) {
  if (expected == got) return;
  throw std::invalid_argument(fmt::format(
      "curve_svg: expected as many values as x ({}) in \"{}\", got {}", expected, name, got));
}

void check(const CurvePicture& picture) {
  for (const Curve& curve : picture.curves) check_size(curve.name, curve.x.size(), curve.y.size());
  for (const Band& band : picture.bands) {
    check_size(band.name, band.x.size(), band.lower.size());
    check_size(band.name, band.x.size(), band.upper.size());
  }
}

/// Only points that are drawn count: one half of a gap must not stretch the picture.
void fit_axes(const CurvePicture& picture, Plot& plot) {
  const svg::Axis kind_x{.log = picture.log_x};
  const svg::Axis kind_y{.log = picture.log_y};
  std::vector<double> xs, ys;
  const auto include = [&](double x, double y) {
    if (!kind_x.has(x) || !kind_y.has(y)) return;
    xs.push_back(x);
    ys.push_back(y);
  };
  for (const Curve& curve : picture.curves) {
    for (std::size_t i = 0; i < curve.x.size(); ++i) include(curve.x[i], curve.y[i]);
  }
  for (const Band& band : picture.bands) {
    for (std::size_t i = 0; i < band.x.size(); ++i) {
      if (!kind_y.has(band.upper[i]) || !std::isfinite(band.lower[i])) continue;
      include(band.x[i], band.upper[i]);
      include(band.x[i], band.lower[i]);
    }
  }
  plot.x = svg::fit_axis(xs, picture.log_x, 0.02);
  plot.y = svg::fit_axis(ys, picture.log_y, 0.05);
}

/// As many as fit side by side.
std::vector<svg::Tick> horizontal_ticks(const svg::Axis& axis) {
  constexpr double kSpace = 16.0;
  std::vector<svg::Tick> ticks;
  for (int most = 8; most > 1; --most) {
    ticks = svg::ticks(axis, most);
    if (static_cast<double>(ticks.size()) * (svg::widest(ticks) + kSpace) < kPlotWidth) break;
  }
  return ticks;
}

Plot make_plot(const CurvePicture& picture) {
  Plot plot;
  fit_axes(picture, plot);
  plot.x_ticks = horizontal_ticks(plot.x);
  plot.y_ticks = svg::ticks(plot.y, 8);
  const double y_label = picture.y_label.empty() ? 0.0 : 26.0;
  plot.left = kMargin + y_label + svg::widest(plot.y_ticks) + 8;
  plot.left = std::max(plot.left, svg::widest(plot.x_ticks) / 2);
  return plot;
}

std::vector<Line> curve_lines(const Plot& plot, const Curve& curve) {
  std::vector<Line> lines;
  bool is_gap = true;
  for (std::size_t i = 0; i < curve.x.size(); ++i) {
    const bool has_point = plot.x.has(curve.x[i]) && plot.y.has(curve.y[i]);
    if (has_point && is_gap) lines.emplace_back();
    if (has_point) lines.back().push_back(plot.at(curve.x[i], curve.y[i]));
    is_gap = !has_point;
  }
  return lines;
}

/// Between two gaps there along the upper edge and back along the lower one.
std::vector<Line> band_outlines(const Plot& plot, const Band& band) {
  std::vector<Line> outlines;
  Line back;
  const auto close = [&] {
    if (!back.empty()) outlines.back().insert(outlines.back().end(), back.rbegin(), back.rend());
    back.clear();
  };
  for (std::size_t i = 0; i < band.x.size(); ++i) {
    if (!plot.x.has(band.x[i]) || !plot.y.has(band.upper[i]) || !std::isfinite(band.lower[i])) {
      close();
      continue;
    }
    if (back.empty()) outlines.emplace_back();
    outlines.back().push_back(plot.at(band.x[i], band.upper[i]));
    back.push_back(plot.at(band.x[i], band.lower[i]));
  }
  close();
  return outlines;
}

/// Of neighbours in one column of pixels the first, the highest, the lowest and the last remain.
Line thinned(const Line& line, double column) {
  Line out;
  const auto column_of = [&](const Pixel& p) { return std::floor(p.x / column); };
  const auto is_lower = [](const Pixel& a, const Pixel& b) { return a.y < b.y; };
  for (auto begin = line.begin(); begin != line.end();) {
    auto end = begin + 1;
    while (end != line.end() && column_of(*end) == column_of(*begin)) ++end;
    const auto [low, high] = std::minmax_element(begin, end, is_lower);
    std::vector<Line::const_iterator> kept = {begin, low, high, end - 1};
    std::sort(kept.begin(), kept.end());
    kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
    for (const auto p : kept) out.push_back(*p);
    begin = end;
  }
  return out;
}

/// A line no larger than a dot becomes one, and of dots that cover each other one remains.
std::vector<Line> thinned(const std::vector<Line>& lines, double column) {
  std::vector<Line> out;
  const auto is_near = [&](const Pixel& a, const Pixel& b) {
    return std::abs(a.x - b.x) < column && std::abs(a.y - b.y) < column;
  };
  for (const Line& line : lines) {
    const auto is_near_first = [&](const Pixel& p) { return is_near(p, line.front()); };
    const bool is_dot = std::all_of(line.begin(), line.end(), is_near_first);
    const bool is_covered =
        !out.empty() && out.back().size() == 1 && is_near(out.back().front(), line.front());
    if (!is_dot) {
      out.push_back(thinned(line, column));
    } else if (!is_covered) {
      out.push_back({line.front()});
    }
  }
  return out;
}

std::size_t num_points(const std::vector<std::vector<Line>>& curves) {
  std::size_t count = 0;
  for (const auto& lines : curves) {
    for (const Line& line : lines) count += line.size();
  }
  return count;
}

/// Columns as narrow as the number of points allows.
void thin_out(std::vector<std::vector<Line>>& curves) {
  for (double column = 0.25; num_points(curves) > kMaxPoints && column < 2 * kPlotWidth;
       column *= 2) {
    for (auto& lines : curves) lines = thinned(lines, column);
  }
}

std::string path_of(const Line& line) {
  std::string path;
  for (const Pixel& place : line) path += (path.empty() ? 'M' : ' ') + svg::point(place.x, place.y);
  return path;
}

std::string stroke(std::string_view colour, LineStyle style) {
  std::string out = fmt::format(" stroke=\"{}\" stroke-width=\"2\"", colour);
  if (style == LineStyle::kDashed) out += " stroke-dasharray=\"8 6\"";
  if (style == LineStyle::kDotted) out += " stroke-dasharray=\"0 5\"";
  return out;
}

/// Strokes of no length with round ends.
std::string dots(const Line& places, std::string_view colour, double size) {
  if (places.empty()) return "";
  std::string path;
  for (const Pixel& place : places) path += path_of({place}) + "h0";
  return fmt::format("<path stroke=\"{}\" stroke-width=\"{}\" d=\"{}\"/>\n", colour,
                     svg::number(size), path);
}

std::string draw_curve(const std::vector<Line>& lines, std::string_view colour, LineStyle style) {
  std::string path;
  Line single;
  for (const Line& line : lines) {
    if (line.size() == 1) {
      single.push_back(line.front());
    } else {
      path += path_of(line);
    }
  }
  if (!path.empty()) path = fmt::format("<path{} d=\"{}\"/>\n", stroke(colour, style), path);
  return path + dots(single, colour, 4);
}

std::string draw_markers(const std::vector<Line>& lines, std::string_view colour) {
  const double least = num_points({lines}) > kMaxMarkers ? kPlotWidth / kMaxMarkers : 0.0;
  Line places;
  for (const Line& line : lines) {
    for (const Pixel& place : line) {
      if (places.empty() || std::abs(place.x - places.back().x) >= least) places.push_back(place);
    }
  }
  return dots(places, colour, kMarker);
}

std::string draw_band(const std::vector<Line>& outlines, std::string_view colour) {
  std::string path;
  for (const Line& outline : outlines) path += path_of(outline) + "z";
  if (path.empty()) return "";
  return fmt::format("<path fill=\"{}\" fill-opacity=\"{}\" d=\"{}\"/>\n", colour, kBandOpacity,
                     path);
}

std::string_view colour_of(std::size_t index) { return kColours[index % std::size(kColours)]; }

/// Which colour each band has: that of the curve of the same name, or else the next after the
/// curves.
std::vector<std::size_t> band_colours(const CurvePicture& picture) {
  std::vector<std::size_t> out;
  std::size_t next = picture.curves.size();
  for (const Band& band : picture.bands) {
    const auto curve =
        std::find_if(picture.curves.begin(), picture.curves.end(),
                     [&](const Curve& c) { return !c.name.empty() && c.name == band.name; });
    const bool has_curve = curve != picture.curves.end();
    out.push_back(has_curve ? curve - picture.curves.begin() : next++);
  }
  return out;
}

std::string draw_data(const CurvePicture& picture, const Plot& plot) {
  std::vector<std::vector<Line>> lines;
  for (const Curve& curve : picture.curves) lines.push_back(curve_lines(plot, curve));
  for (const Band& band : picture.bands) lines.push_back(band_outlines(plot, band));
  thin_out(lines);
  if (num_points(lines) == 0) {
    return svg::text(plot.left + kPlotWidth / 2, kTop + kPlotHeight / 2, " text-anchor=\"middle\"",
                     picture.log_y ? "nothing to draw: no value is above 0"
                                   : "nothing to draw: there is no value");
  }
  const std::size_t num_curves = picture.curves.size();
  const std::vector<std::size_t> colours = band_colours(picture);
  std::string out;
  for (std::size_t i = 0; i < picture.bands.size(); ++i) {
    out += draw_band(lines[num_curves + i], colour_of(colours[i]));
  }
  out += "<g fill=\"none\" stroke-linecap=\"round\" stroke-linejoin=\"round\">\n";
  for (std::size_t i = 0; i < num_curves; ++i) {
    out += draw_curve(lines[i], colour_of(i), picture.curves[i].style);
    if (picture.curves[i].markers) out += draw_markers(lines[i], colour_of(i));
  }
  return out + "</g>\n";
}

std::string draw_axes(const CurvePicture& picture, const Plot& plot) {
  const double middle = plot.left + kPlotWidth / 2;
  std::string out;
  for (const svg::Tick& tick : plot.x_ticks) {
    const double x = plot.left + kPlotWidth * tick.fraction;
    out += svg::rectangle(x - 0.5, kTop, 1, kPlotHeight, kGridColour);
    out += svg::marked_text(x, kBottom + 21, " text-anchor=\"middle\"", tick.label);
  }
  for (const svg::Tick& tick : plot.y_ticks) {
    const double y = kBottom - kPlotHeight * tick.fraction;
    out += svg::rectangle(plot.left, y - 0.5, kPlotWidth, 1, kGridColour);
    out += svg::marked_text(plot.left - 8, y + 5, " text-anchor=\"end\"", tick.label);
  }
  out += svg::rectangle(plot.left - 0.5, kTop, 1, kPlotHeight, svg::kGrey);
  out += svg::rectangle(plot.left - 0.5, kBottom - 0.5, kPlotWidth + 0.5, 1, svg::kGrey);
  out += svg::text(middle, kBottom + 48, " text-anchor=\"middle\"",
                   svg::shortened(picture.x_label, kPlotWidth));
  const double y = kTop + kPlotHeight / 2;
  const double x = kMargin + 12;
  out += svg::text(x, y,
                   fmt::format(" text-anchor=\"middle\" transform=\"rotate(-90 {} {})\"",
                               svg::number(x), svg::number(y)),
                   svg::shortened(picture.y_label, kPlotHeight));
  return out;
}

struct Entry {
  std::string name;
  std::string sample;  ///< the line, the dots, the area: on 0 <= x <= kSample around y = 0
};

std::string band_sample(std::string_view colour) {
  return fmt::format("<path fill=\"{}\" fill-opacity=\"{}\" d=\"M0 -7H{}V7H0z\"/>", colour,
                     kBandOpacity, svg::number(kSample));
}

std::vector<Entry> legend_entries(const CurvePicture& picture) {
  std::vector<Entry> entries(picture.curves.size() + picture.bands.size());
  const std::vector<std::size_t> colours = band_colours(picture);
  for (std::size_t i = 0; i < colours.size(); ++i) {
    entries[colours[i]] = {picture.bands[i].name, band_sample(colour_of(colours[i]))};
  }
  for (std::size_t i = 0; i < picture.curves.size(); ++i) {
    const Curve& curve = picture.curves[i];
    entries[i].name = curve.name;
    entries[i].sample +=
        fmt::format("<path fill=\"none\" stroke-linecap=\"round\"{} d=\"M0 0H{}\"/>",
                    stroke(colour_of(i), curve.style), svg::number(kSample));
    if (!curve.markers) continue;
    entries[i].sample +=
        fmt::format("<circle cx=\"{}\" cy=\"0\" r=\"{}\" fill=\"{}\"/>", svg::number(kSample / 2),
                    svg::number(kMarker / 2), colour_of(i));
  }
  std::erase_if(entries, [](const Entry& entry) { return entry.name.empty(); });
  for (Entry& entry : entries) entry.name = svg::shortened(entry.name, kMaxName);
  return entries;
}

double width_of(std::span<const Entry> entries) {
  double width = 0.0;
  for (const Entry& entry : entries) {
    width = std::max(width, kLegendGap + kSample + 8 + svg::text_width(entry.name));
  }
  return width;
}

std::string draw_legend(std::span<const Entry> entries, double left) {
  std::string out;
  double y = kTop + kLegendLine / 2;
  for (const Entry& entry : entries) {
    out += fmt::format("<g transform=\"translate({} {})\">{}</g>\n", svg::number(left),
                       svg::number(y), entry.sample);
    out += svg::text(left + kSample + 8, y + 5, "", entry.name);
    y += kLegendLine;
  }
  return out;
}

}  // namespace

std::string curve_svg(const CurvePicture& picture) {
  check(picture);
  const Plot plot = make_plot(picture);
  const std::vector<Entry> entries = legend_entries(picture);
  const double margin = std::max(kMargin, svg::widest(plot.x_ticks) / 2);
  const double width = plot.left + kPlotWidth + width_of(entries) + margin;
  const double legend_height = kTop + kLegendLine * static_cast<double>(entries.size()) + kMargin;
  std::string out = svg::opening(width, std::max(kBottom + kFooter, legend_height), picture.title);
  out += svg::heading(kMargin, width - 2 * kMargin, picture.title);
  out += draw_axes(picture, plot);
  out += draw_data(picture, plot);
  out += draw_legend(entries, plot.left + kPlotWidth + kLegendGap);
  return out + "</svg>\n";
}

}  // namespace mpssm::report
