// SPDX-License-Identifier: MIT
// Edges first, then nodes, then the marked nodes with their labels, so that nothing hides them.
#include "mpssm/report/graph_picture.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <limits>
#include <stdexcept>
#include <string_view>

#include "mpssm/report/colour_scale.h"
#include "mpssm/report/svg.h"

namespace mpssm::report {
namespace {

constexpr double kMargin = 24.0;
constexpr double kTop = 60.0;
constexpr double kPad = 32.0;     // around the places, for nodes and labels
constexpr double kWidth = 640.0;  // of the box of places, at most
constexpr double kHeight = 460.0;
constexpr double kMinWidth = 360.0;   // of the drawing, for the title
constexpr double kMinHeight = 220.0;  // and for the colour bar
constexpr double kGap = 20.0;
constexpr std::string_view kEdgeColour = "#c3c8cf";
constexpr std::string_view kOutline = "#5b626c";
constexpr std::string_view kRing = "#0072b2";  // none of the warm colours of the scale

[[noreturn]] void fail(const std::string& expected, const std::string& got) {
  throw std::invalid_argument(fmt::format("graph_svg: expected {}, got {}", expected, got));
}

void check(const GraphPicture& picture) {
  const auto size = static_cast<std::int64_t>(picture.position.size());
  const std::string nodes = fmt::format("{} nodes", size);
  const auto check_node = [&](const char* what, std::int32_t node) {
    if (node < 0 || node >= size) fail(what + (" among " + nodes), std::to_string(node));
  };
  if (picture.value.size() != picture.position.size()) {
    fail("values of " + nodes, std::to_string(picture.value.size()));
  }
  if (!picture.label.empty() && picture.label.size() != picture.position.size()) {
    fail("no labels or those of " + nodes, std::to_string(picture.label.size()));
  }
  for (const Point& p : picture.position) {
    if (std::isfinite(p.x) && std::isfinite(p.y)) continue;
    fail("finite positions", fmt::format("{}, {}", p.x, p.y));
  }
  for (const auto& [from, to] : picture.edges) {
    check_node("edges", from);
    check_node("edges", to);
  }
  for (const std::int32_t node : picture.marked) check_node("marked nodes", node);
}

/// Where everything goes in the picture.
struct Drawing {
  std::vector<Point> place;  ///< y downwards
  double radius = 0.0;
  double width = kMinWidth;
  double height = kMinHeight;
};

struct Span {
  double middle;
  double half;
};

/// Halves, as the sum or difference of two large numbers overflows. A width that can hardly be
/// written counts as none.
template <typename Coordinate>
Span span_of(std::span<const Point> position, const Coordinate& coordinate) {
  const auto [low, high] = std::minmax_element(
      position.begin(), position.end(),
      [&](const Point& a, const Point& b) { return coordinate(a) < coordinate(b); });
  const double half = coordinate(*high) / 2 - coordinate(*low) / 2;
  return {coordinate(*high) / 2 + coordinate(*low) / 2, half > 1e-300 ? half : 0.0};
}

/// The box of the places as large as it fits, in the middle of the drawing.
Drawing fitted(std::span<const Point> position) {
  Drawing out;
  if (position.empty()) return out;
  const Span x = span_of(position, [](const Point& p) { return p.x; });
  const Span y = span_of(position, [](const Point& p) { return p.y; });
  const double size = std::max(x.half / kWidth, y.half / kHeight);
  const double scale = size > 0.0 ? 0.5 / size : 0.0;
  out.width = std::max(kMinWidth, 2 * (scale * x.half + kPad));
  out.height = std::max(kMinHeight, 2 * (scale * y.half + kPad));
  out.radius = std::clamp(45.0 / std::sqrt(static_cast<double>(position.size())), 2.5, 9.0);
  for (const Point& p : position) {
    out.place.push_back({kMargin + out.width / 2 + scale * (p.x - x.middle),
                         kTop + out.height / 2 - scale * (p.y - y.middle)});
  }
  return out;
}

std::string draw_edges(const GraphPicture& picture, const Drawing& drawing) {
  std::string path;
  for (const auto& [from, to] : picture.edges) {
    if (from == to) continue;
    const Point& a = drawing.place[from];
    const Point& b = drawing.place[to];
    path += fmt::format("M{} {}", svg::point(a.x, a.y), svg::point(b.x, b.y));
  }
  if (path.empty()) return "";
  return fmt::format("<path fill=\"none\" stroke=\"{}\" d=\"{}\"/>\n", kEdgeColour, path);
}

std::string circle(const Point& place, double radius, std::string_view attributes,
                   std::string_view content) {
  const std::string open =
      fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"{}\"{}", svg::number(place.x),
                  svg::number(place.y), svg::number(radius), attributes);
  return content.empty() ? open + "/>\n" : fmt::format("{}>{}</circle>\n", open, content);
}

std::string draw_node(const GraphPicture& picture, const Drawing& drawing,
                      const svg::ColourScale& scale, std::size_t node) {
  const std::string fill = fmt::format(" fill=\"{}\"", scale.colour(picture.value[node]));
  std::string tooltip;
  if (!picture.label.empty() && !picture.label[node].empty()) {
    tooltip = "<title>" + svg::escaped(picture.label[node]) + "</title>";
  }
  return circle(drawing.place[node], drawing.radius, fill, tooltip);
}

/// Text around its middle.
struct Label {
  double x;
  double y;
  double half_width;
  static constexpr double kHalfHeight = 8.0;

  bool touches(const Label& other) const {
    return std::abs(x - other.x) < half_width + other.half_width + 6 &&
           std::abs(y - other.y) < 2 * kHalfHeight;
  }
  bool touches(const Point& node, double radius) const {
    return std::abs(x - node.x) < half_width + radius &&
           std::abs(y - node.y) < kHalfHeight + radius;
  }
};

/// Above, below, right and left of the node, then further up and down inside the drawing.
std::vector<Point> label_places(const Drawing& drawing, const Point& node, double half_width) {
  const double near = drawing.radius + 6 + Label::kHalfHeight;
  const double aside = drawing.radius + 8 + half_width;
  std::vector<Point> out = {{node.x, node.y - near},
                            {node.x, node.y + near},
                            {node.x + aside, node.y},
                            {node.x - aside, node.y}};
  for (double away = near + 10; away < drawing.height; away += 10) {
    if (node.y - away > kTop + Label::kHalfHeight) out.push_back({node.x, node.y - away});
    if (node.y + away < kTop + drawing.height - Label::kHalfHeight) {
      out.push_back({node.x, node.y + away});
    }
  }
  return out;
}

/// Where it hides least: no other label, few nodes, near its own.
Label best_label(const Drawing& drawing, const Point& node, double half_width,
                 std::span<const Label> taken) {
  const double least = kMargin + half_width;
  const double most = std::max(least, kMargin + drawing.width - half_width);
  Label best{};
  double least_cost = std::numeric_limits<double>::infinity();
  for (const Point& place : label_places(drawing, node, half_width)) {
    const Label label{std::clamp(place.x, least, most), place.y, half_width};
    double cost = std::max(0.0, std::abs(place.y - node.y) - drawing.radius) / 40;
    for (const Label& other : taken) cost += label.touches(other) ? 1000.0 : 0.0;
    for (const Point& other : drawing.place) cost += label.touches(other, drawing.radius) ? 1 : 0;
    if (cost >= least_cost) continue;
    best = label;
    least_cost = cost;
  }
  return best;
}

/// With a line to the node unless it is next to it.
std::string draw_label(const Drawing& drawing, const Label& label, const Point& node,
                       std::string_view text) {
  std::string out;
  const double side = label.y < node.y ? -1.0 : 1.0;
  const double from = node.y + side * (drawing.radius + 4);
  const double to = label.y - side * (Label::kHalfHeight + 1);
  if (side * (to - from) > 6) {
    out = fmt::format("<path stroke=\"{}\" d=\"M{} {}\"/>\n", kRing, svg::point(node.x, from),
                      svg::point(node.x, to));
  }
  // The white seam keeps the text apart from the edges that it crosses.
  return out + svg::text(label.x, label.y + 5,
                         " text-anchor=\"middle\" stroke=\"#fff\" stroke-width=\"4\" "
                         "stroke-linejoin=\"round\" paint-order=\"stroke\"",
                         text);
}

std::string draw_marked(const GraphPicture& picture, const Drawing& drawing,
                        const svg::ColourScale& scale) {
  std::string nodes, texts;
  std::vector<Label> labels;
  for (const std::int32_t node : picture.marked) {
    const Point& place = drawing.place[node];
    nodes += draw_node(picture, drawing, scale, node);
    nodes += circle(place, drawing.radius + 3,
                    fmt::format(" fill=\"none\" stroke=\"{}\" stroke-width=\"2.5\"", kRing), "");
    if (picture.label.empty() || picture.label[node].empty()) continue;
    const std::string text = svg::shortened(picture.label[node], drawing.width);
    labels.push_back(best_label(drawing, place, svg::text_width(text) / 2, labels));
    texts += draw_label(drawing, labels.back(), place, text);
  }
  return nodes + texts;
}

}  // namespace

std::string graph_svg(const GraphPicture& picture) {
  check(picture);
  const svg::ColourScale scale(picture.value, picture.log_scale);
  const Drawing drawing = fitted(picture.position);
  const double bar_left = kMargin + drawing.width + kGap;
  const double width = bar_left + scale.bar_width() + kMargin;
  std::string out = svg::opening(width, kTop + drawing.height + kMargin, picture.title);
  out += svg::heading(kMargin, width - 2 * kMargin, picture.title);
  out += draw_edges(picture, drawing);
  std::vector<bool> is_marked(picture.position.size(), false);
  for (const std::int32_t node : picture.marked) is_marked[node] = true;
  out += fmt::format("<g stroke=\"{}\" stroke-width=\".6\">\n", kOutline);
  for (std::size_t node = 0; node < picture.position.size(); ++node) {
    if (!is_marked[node]) out += draw_node(picture, drawing, scale, node);
  }
  out += "</g>\n" + draw_marked(picture, drawing, scale);
  out += scale.bar(bar_left, kTop, drawing.height, picture.value_label);
  return out + "</svg>\n";
}

}  // namespace mpssm::report
