// SPDX-License-Identifier: MIT
#include "mpssm/report/chart.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <limits>

#include "mpssm/report/axis.h"
#include "mpssm/report/svg.h"

namespace mpssm::report::page {
namespace {

constexpr double kChartWidth = 460.0;
constexpr double kChartHeight = 290.0;
constexpr double kLeftEdge = 62.0;
constexpr double kRightEdge = 14.0;
constexpr double kUpperEdge = 12.0;
constexpr double kLowerEdge = 46.0;
constexpr std::size_t kMostPoints = 600;  // of a line: more than it has pixels

struct Frame {
  svg::Axis x;
  svg::Axis y;
  double place_x(double value) const {
    return kLeftEdge + x.fraction(value) * (kChartWidth - kLeftEdge - kRightEdge);
  }
  double place_y(double value) const {
    return kChartHeight - kLowerEdge - y.fraction(value) * (kChartHeight - kUpperEdge - kLowerEdge);
  }
  bool has(double at_x, double at_y) const { return x.has(at_x) && y.has(at_y); }
};

double bar_step(const Series& series) {
  return series.x.size() > 1 ? series.x[1] - series.x[0] : 1.0;
}

svg::Axis axis_of(const Chart& chart, bool is_x) {
  const auto& range = is_x ? chart.x_range : chart.y_range;
  if (range) return {.low = range->first, .high = range->second, .log = false};
  std::vector<double> values;
  for (const Series& series : chart.series) {
    const std::vector<double>& own = is_x ? series.x : series.y;
    values.insert(values.end(), own.begin(), own.end());
    if (series.mark != Mark::kBars || series.x.empty()) continue;
    if (!is_x) {
      values.push_back(0.0);
    } else {
      const double half = bar_step(series) / 2;
      values.insert(values.end(), {series.x.front() - half, series.x.back() + half});
    }
  }
  if (is_x && chart.marked_x) values.push_back(*chart.marked_x);
  return svg::fit_axis(values, !is_x && chart.log_y, is_x ? 0.0 : 0.05);
}

/// The indices to draw: all of a short line; of a long one the least and the largest of each
/// stretch.
std::vector<std::size_t> thinned(const Series& series) {
  const std::size_t count = series.y.size();
  std::vector<std::size_t> kept;
  if (count <= kMostPoints) {
    for (std::size_t i = 0; i < count; ++i) kept.push_back(i);
    return kept;
  }
  const std::size_t stretches = kMostPoints / 2;
  for (std::size_t s = 0; s < stretches; ++s) {
    const std::size_t begin = s * count / stretches;
    const std::size_t end = (s + 1) * count / stretches;
    std::size_t low = begin, high = begin;
    for (std::size_t i = begin; i < end; ++i) {
      if (series.y[i] < series.y[low]) low = i;
      if (series.y[i] > series.y[high]) high = i;
    }
    kept.push_back(std::min(low, high));
    if (low != high) kept.push_back(std::max(low, high));
  }
  return kept;
}

std::string colour_class(const Series& series) {
  return series.colour < 0 ? "cg" : fmt::format("c{}", series.colour % 8);
}

std::string draw_line(const Series& series, const Frame& frame) {
  std::string path;
  std::string dots;
  bool is_open = false;
  std::size_t length = 0;
  std::string last;
  const auto close = [&] {
    // A point between two gaps is a dot: a path of one point would not be seen.
    if (is_open && length == 1) dots += "M" + last + "h.01";
    is_open = false;
    length = 0;
  };
  for (const std::size_t i : thinned(series)) {
    if (!frame.has(series.x[i], series.y[i])) {
      close();
      continue;
    }
    last = svg::point(frame.place_x(series.x[i]), frame.place_y(series.y[i]));
    path += (is_open ? "L" : "M") + last;
    is_open = true;
    ++length;
  }
  close();
  const char* dashes = series.mark == Mark::kDashed ? " dash" : "";
  std::string out =
      fmt::format("<path class=\"line {}{}\" d=\"{}\"/>\n", colour_class(series), dashes, path);
  if (!dots.empty()) {
    out += fmt::format("<path class=\"dots {}\" d=\"{}\"/>\n", colour_class(series), dots);
  }
  return path.empty() ? "" : out;
}

std::string draw_dots(const Series& series, const Frame& frame) {
  std::string path;
  for (std::size_t i = 0; i < series.y.size(); ++i) {
    if (!frame.has(series.x[i], series.y[i])) continue;
    path += "M" + svg::point(frame.place_x(series.x[i]), frame.place_y(series.y[i])) + "h.01";
  }
  if (path.empty()) return "";
  return fmt::format("<path class=\"dots {}{}\" d=\"{}\"/>\n", colour_class(series),
                     series.y.size() > 300 ? " many" : "", path);
}

std::string draw_bars(const Series& series, const Frame& frame) {
  std::string out = fmt::format("<g class=\"bar {}\">", colour_class(series));
  const double step = bar_step(series);
  const double bottom = frame.place_y(0.0);
  for (std::size_t i = 0; i < series.y.size(); ++i) {
    if (!std::isfinite(series.y[i])) continue;
    const double left = frame.place_x(series.x[i] - 0.45 * step);
    const double right = frame.place_x(series.x[i] + 0.45 * step);
    const double top = frame.place_y(series.y[i]);
    out += fmt::format("<path d=\"M{}H{}V{}H{}z\"/>", svg::point(left, bottom), svg::number(right),
                       svg::number(top), svg::number(left));
  }
  return out + "</g>\n";
}

std::string draw_axes(const Chart& chart, const Frame& frame) {
  const double bottom = kChartHeight - kLowerEdge;
  const double right = kChartWidth - kRightEdge;
  std::string grid, out;
  for (const svg::Tick& tick : svg::ticks(frame.y, 6)) {
    const double y = bottom - tick.fraction * (bottom - kUpperEdge);
    grid += fmt::format("M{}H{}", svg::point(kLeftEdge, y), svg::number(right));
    out += svg::marked_text(kLeftEdge - 7, y + 4, " text-anchor=\"end\"", tick.label);
  }
  for (const svg::Tick& tick : svg::ticks(frame.x, 6)) {
    const double x = kLeftEdge + tick.fraction * (right - kLeftEdge);
    grid += fmt::format("M{}V{}", svg::point(x, kUpperEdge), svg::number(bottom));
    out += svg::marked_text(x, bottom + 17, " text-anchor=\"middle\"", tick.label);
  }
  out += svg::text((kLeftEdge + right) / 2, kChartHeight - 8,
                   " text-anchor=\"middle\" class=\"axis\"", chart.x_label);
  const double middle = (kUpperEdge + bottom) / 2;
  out += svg::text(14, middle,
                   fmt::format(" text-anchor=\"middle\" class=\"axis\" transform=\"rotate(-90 14 "
                               "{})\"",
                               svg::number(middle)),
                   chart.y_label);
  return fmt::format("<path class=\"grid\" d=\"{}\"/>\n{}", grid, out);
}

std::string draw_marked(const Chart& chart, const Frame& frame) {
  if (!chart.marked_x || !frame.x.has(*chart.marked_x)) return "";
  const double x = frame.place_x(*chart.marked_x);
  const bool is_left = x > kChartWidth / 2;
  return fmt::format("<path class=\"mark\" d=\"M{}V{}\"/>\n", svg::point(x, kUpperEdge),
                     svg::number(kChartHeight - kLowerEdge)) +
         svg::text(x + (is_left ? -5 : 5), kUpperEdge + 11,
                   fmt::format(" class=\"mark\" text-anchor=\"{}\"", is_left ? "end" : "start"),
                   chart.marked_label);
}

std::string legend(const Chart& chart) {
  std::string out;
  for (const Series& series : chart.series) {
    if (series.name.empty()) continue;
    out += fmt::format("<li class=\"{}{}\">{}</li>", colour_class(series),
                       series.mark == Mark::kDashed ? " dash" : "", svg::escaped(series.name));
  }
  return out.empty() ? "" : "<ul class=\"legend\">" + out + "</ul>\n";
}

}  // namespace

std::string chart_html(const Chart& chart) {
  const Frame frame{axis_of(chart, /*is_x=*/true), axis_of(chart, /*is_x=*/false)};
  std::string out = fmt::format(
      "<figure class=\"chart\"><h3>{}</h3>\n<svg viewBox=\"0 0 {} {}\" role=\"img\" "
      "aria-label=\"{}\">\n",
      svg::escaped(chart.title), svg::number(kChartWidth), svg::number(kChartHeight),
      svg::escaped(fmt::format("{}: {} over {}. {}", chart.title, chart.y_label, chart.x_label,
                               chart.note)));
  out += draw_axes(chart, frame);
  for (const Series& series : chart.series) {
    switch (series.mark) {
      case Mark::kLine:
      case Mark::kDashed:
        out += draw_line(series, frame);
        break;
      case Mark::kDots:
        out += draw_dots(series, frame);
        break;
      case Mark::kBars:
        out += draw_bars(series, frame);
        break;
    }
  }
  out += draw_marked(chart, frame) + "</svg>\n" + legend(chart);
  if (!chart.note.empty()) {
    out += fmt::format("<figcaption>{}</figcaption>", svg::escaped(chart.note));
  }
  return out + "</figure>\n";
}

}  // namespace mpssm::report::page
