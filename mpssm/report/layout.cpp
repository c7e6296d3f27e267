// SPDX-License-Identifier: MIT
// Each component starts from classical scaling, which unfolds it, and is refined node by node.
#include "mpssm/report/layout.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <numbers>
#include <numeric>
#include <stdexcept>
#include <string>

#include "mpssm/base/random.h"
#include "mpssm/graph/breadth_first.h"

namespace mpssm::report {
namespace {

using Edges = std::span<const std::pair<std::int32_t, std::int32_t>>;
using Neighbours = std::vector<std::vector<std::int32_t>>;

constexpr int kPowerSteps = 60;
constexpr double kSettled = 1e-4;  // largest step of a sweep, in hops
constexpr double kGap = 1.0;       // between components, in hops

void check(std::int64_t num_nodes, Edges edges) {
  if (num_nodes < 0 || num_nodes > kMaxLayoutNodes) {
    throw std::invalid_argument(
        fmt::format("stress_layout: expected 0 to {} nodes, got {}", kMaxLayoutNodes, num_nodes));
  }
  for (const auto& [from, to] : edges) {
    if (from >= 0 && from < num_nodes && to >= 0 && to < num_nodes) continue;
    throw std::invalid_argument(fmt::format(
        "stress_layout: expected edges among {} nodes, got {} - {}", num_nodes, from, to));
  }
}

Neighbours neighbours_of(std::int64_t num_nodes, Edges edges) {
  Neighbours out(num_nodes);
  for (const auto& [from, to] : edges) {
    out[from].push_back(to);
    out[to].push_back(from);
  }
  return out;
}

/// The nodes that can be reached from `source`, nearest first; hops to them go into `hops`, which
/// must be -1 there.
std::vector<std::int32_t> search(const Neighbours& neighbours, std::int32_t source,
                                 std::vector<std::int32_t>& hops) {
  std::vector<std::int32_t> order;
  const auto visit_neighbours = [&](std::int32_t node, const auto& visit) {
    for (const std::int32_t other : neighbours[node]) visit(other);
  };
  graph::breadth_first(source, visit_neighbours, hops, order);
  return order;
}

/// Hops between the nodes of a component: a full square matrix.
class Hops {
 public:
  Hops(const Neighbours& neighbours, const std::vector<std::int32_t>& nodes)
      : size_(nodes.size()), hops_(size_ * size_) {
    std::vector<std::int32_t> from_one(neighbours.size(), -1);
    for (std::size_t i = 0; i < size_; ++i) {
      search(neighbours, nodes[i], from_one);
      for (std::size_t j = 0; j < size_; ++j) hops_[i * size_ + j] = from_one[nodes[j]];
      for (const std::int32_t node : nodes) from_one[node] = -1;
    }
  }
  std::size_t size() const { return size_; }
  double operator()(std::size_t i, std::size_t j) const { return hops_[i * size_ + j]; }

 private:
  std::size_t size_;
  std::vector<std::int32_t> hops_;
};

using Vector = std::vector<double>;

double dot(const Vector& a, const Vector& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

void centre(Vector& values) {
  const double mean =
      std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  for (double& value : values) value -= mean;
}

/// Values in [-1, 1).
Vector scattered(std::size_t size, std::uint64_t seed) {
  base::Random random(seed);
  Vector out(size);
  for (double& value : out) value = 2.0 * random.unit() - 1.0;
  return out;
}

/// One step of the power method with -1/2 J H J, where H holds the squared hops and J centres.
Vector gram_product(const Hops& hops, const Vector& v) {
  Vector out(v.size(), 0.0);
  for (std::size_t i = 0; i < v.size(); ++i) {
    for (std::size_t j = 0; j < v.size(); ++j) out[i] -= 0.5 * hops(i, j) * hops(i, j) * v[j];
  }
  centre(out);
  return out;
}

/// The dominant eigenvector at right angles to `other`, scaled by the root of its eigenvalue.
Vector scaled_axis(const Hops& hops, const Vector& other, std::uint64_t seed) {
  const double other_square = dot(other, other);
  Vector v = scattered(hops.size(), seed);
  double eigenvalue = 0.0;
  for (int step = 0; step < kPowerSteps; ++step) {
    centre(v);
    const double share = other_square > 0.0 ? dot(v, other) / other_square : 0.0;
    for (std::size_t i = 0; i < v.size(); ++i) v[i] -= share * other[i];
    const double norm = std::sqrt(dot(v, v));
    if (norm < 1e-9) return Vector(v.size(), 0.0);
    for (double& value : v) value /= norm;
    Vector next = gram_product(hops, v);
    eigenvalue = dot(v, next);
    v = std::move(next);
  }
  // v is a product: longer than the unit vector by the eigenvalue.
  const double scale = eigenvalue != 0.0 ? 1.0 / std::sqrt(std::abs(eigenvalue)) : 0.0;
  for (double& value : v) value *= scale;
  return v;
}

/// Classical scaling. It bends long thin graphs into a bow, hence the flattening. Nodes with equal
/// hops to all others fall together: the scatter parts them, where rounding would do so otherwise
/// and make the picture depend on the compiler.
std::vector<Point> start(const Hops& hops) {
  constexpr double kThin = 0.4;
  constexpr double kFlattened = 0.25;
  constexpr double kScatter = 0.02;
  const Vector x = scaled_axis(hops, Vector(hops.size(), 0.0), 1);
  const Vector y = scaled_axis(hops, x, 2);
  const double factor = dot(y, y) < kThin * kThin * dot(x, x) ? kFlattened : 1.0;
  const Vector dx = scattered(hops.size(), 3);
  const Vector dy = scattered(hops.size(), 4);
  std::vector<Point> out(hops.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = {x[i] + kScatter * dx[i], factor * y[i] + kScatter * dy[i]};
  }
  return out;
}

/// Where node i has the least majorising stress while the others stay.
Point best_place(const Hops& hops, const std::vector<Point>& points, std::size_t i) {
  double x = 0.0, y = 0.0, total = 0.0;
  for (std::size_t j = 0; j < points.size(); ++j) {
    if (j == i) continue;
    const double wanted = hops(i, j);
    const double weight = 1.0 / (wanted * wanted);
    const double dx = points[i].x - points[j].x;
    const double dy = points[i].y - points[j].y;
    const double distance = std::sqrt(dx * dx + dy * dy);
    const double stretch = distance > 1e-12 ? wanted / distance : 0.0;
    x += weight * (points[j].x + stretch * dx);
    y += weight * (points[j].y + stretch * dy);
    total += weight;
  }
  return {x / total, y / total};
}

/// As many sweeps as keep the time within bounds.
int max_sweeps(std::size_t size) {
  constexpr double kPairs = 1.2e8;
  return static_cast<int>(std::clamp(kPairs / static_cast<double>(size * size), 60.0, 2000.0));
}

std::vector<Point> lay_out(const Hops& hops) {
  if (hops.size() == 1) return {Point{}};
  std::vector<Point> points = start(hops);
  for (int sweep = max_sweeps(hops.size()); sweep > 0; --sweep) {
    double largest = 0.0;
    for (std::size_t i = 0; i < points.size(); ++i) {
      const Point place = best_place(hops, points, i);
      largest = std::max(largest, std::hypot(place.x - points[i].x, place.y - points[i].y));
      points[i] = place;
    }
    if (largest < kSettled) break;
  }
  return points;
}

struct Box {
  Point low;
  Point high;
  double width() const { return high.x - low.x; }
  double height() const { return high.y - low.y; }
};

Box box_of(const std::vector<Point>& points) {
  Box box{points.front(), points.front()};
  for (const Point& p : points) {
    box.low = {std::min(box.low.x, p.x), std::min(box.low.y, p.y)};
    box.high = {std::max(box.high.x, p.x), std::max(box.high.y, p.y)};
  }
  return box;
}

std::vector<Point> turned(const std::vector<Point>& points, double angle) {
  const double c = std::cos(angle);
  const double s = std::sin(angle);
  std::vector<Point> out = points;
  for (Point& p : out) p = {c * p.x + s * p.y, c * p.y - s * p.x};
  return out;
}

/// Direction in which the points spread most.
double main_direction(const std::vector<Point>& points) {
  Vector x(points.size()), y(points.size());
  for (std::size_t i = 0; i < points.size(); ++i) {
    x[i] = points[i].x;
    y[i] = points[i].y;
  }
  centre(x);
  centre(y);
  return std::atan2(2.0 * dot(x, y), dot(x, x) - dot(y, y)) / 2.0;
}

/// The angle around `middle` whose upright box has the least area; `middle` itself in a draw.
double smallest_box(const std::vector<Point>& points, double middle, double step, int steps) {
  double best = middle;
  double least = -1.0;
  for (int k = 0; k <= 2 * steps; ++k) {
    const double angle = middle + step * (k % 2 == 0 ? k / 2 : -(k + 1) / 2);  // 0, -1, 1, -2, 2
    const Box box = box_of(turned(points, angle));
    const double area = box.width() * box.height();
    if (least >= 0.0 && area >= least * (1.0 - 1e-9)) continue;
    least = area;
    best = angle;
  }
  return best;
}

/// Turned into the smallest box, lying, with the first node on the left.
std::vector<Point> upright(const std::vector<Point>& points) {
  constexpr double kDegree = std::numbers::pi / 180.0;
  double angle = smallest_box(points, main_direction(points), kDegree, 45);
  angle = smallest_box(points, angle, kDegree / 50, 50);
  std::vector<Point> out = turned(points, angle);
  if (box_of(out).height() > box_of(out).width()) out = turned(out, std::numbers::pi / 2);
  const Box box = box_of(out);
  if (out.front().x > (box.low.x + box.high.x) / 2) out = turned(out, std::numbers::pi);
  return out;
}

void scale_to_unit_square(std::vector<Point>& points) {
  const Box box = box_of(points);
  const double side = std::max(box.width(), box.height());
  const double scale = side > 0.0 ? 1.0 / side : 0.0;
  const Point middle{(box.low.x + box.high.x) / 2, (box.low.y + box.high.y) / 2};
  for (Point& p : points) {
    p.x = std::clamp(0.5 + scale * (p.x - middle.x), 0.0, 1.0);
    p.y = std::clamp(0.5 + scale * (p.y - middle.y), 0.0, 1.0);
  }
}

}  // namespace

std::vector<Point> stress_layout(std::int64_t num_nodes, Edges edges) {
  check(num_nodes, edges);
  if (num_nodes == 0) return {};
  const Neighbours neighbours = neighbours_of(num_nodes, edges);
  std::vector<Point> out(num_nodes);
  std::vector<std::int32_t> reached(num_nodes, -1);
  double left = 0.0;
  for (std::int32_t node = 0; node < num_nodes; ++node) {
    if (reached[node] >= 0) continue;
    std::vector<std::int32_t> nodes = search(neighbours, node, reached);
    std::sort(nodes.begin(), nodes.end());
    const std::vector<Point> points = upright(lay_out(Hops(neighbours, nodes)));
    const Box box = box_of(points);
    const double middle = (box.low.y + box.high.y) / 2;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      out[nodes[i]] = {left + points[i].x - box.low.x, points[i].y - middle};
    }
    left += box.width() + kGap;
  }
  scale_to_unit_square(out);
  return out;
}

}  // namespace mpssm::report
