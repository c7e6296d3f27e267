// SPDX-License-Identifier: MIT
// Shapes that have an obvious picture come out as that picture.
#include "mpssm/report/layout.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <stdexcept>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mpssm::report {
namespace {

using ::testing::StrEq;
using ::testing::ThrowsMessage;

using Edges = std::vector<std::pair<std::int32_t, std::int32_t>>;

double distance(const Point& a, const Point& b) { return std::hypot(a.x - b.x, a.y - b.y); }

Edges path(std::int32_t size, std::int32_t first = 0) {
  Edges edges;
  for (std::int32_t i = 1; i < size; ++i) edges.emplace_back(first + i - 1, first + i);
  return edges;
}

Edges ring(std::int32_t size) {
  Edges edges = path(size);
  edges.emplace_back(size - 1, 0);
  return edges;
}

Edges clique(std::int32_t size, std::int32_t first = 0) {
  Edges edges;
  for (std::int32_t i = 0; i < size; ++i) {
    for (std::int32_t j = 0; j < i; ++j) edges.emplace_back(first + i, first + j);
  }
  return edges;
}

Edges grid(std::int32_t rows, std::int32_t columns) {
  Edges edges;
  for (std::int32_t i = 0; i < rows * columns; ++i) {
    if (i % columns != 0) edges.emplace_back(i - 1, i);
    if (i >= columns) edges.emplace_back(i - columns, i);
  }
  return edges;
}

void add(Edges& edges, const Edges& more) { edges.insert(edges.end(), more.begin(), more.end()); }

struct Extent {
  double low;
  double high;
  double length() const { return high - low; }
};

template <typename Coordinate>
Extent extent(const std::vector<Point>& points, const Coordinate& coordinate) {
  Extent out{coordinate(points.front()), coordinate(points.front())};
  for (const Point& p : points) {
    out = {std::min(out.low, coordinate(p)), std::max(out.high, coordinate(p))};
  }
  return out;
}
Extent extent_x(const std::vector<Point>& points) {
  return extent(points, [](const Point& p) { return p.x; });
}
Extent extent_y(const std::vector<Point>& points) {
  return extent(points, [](const Point& p) { return p.y; });
}

void expect_fills_the_unit_square(const std::vector<Point>& points) {
  const Extent x = extent_x(points);
  const Extent y = extent_y(points);
  EXPECT_TRUE(x.low >= 0 && x.high <= 1 && y.low >= 0 && y.high <= 1);
  EXPECT_NEAR(std::max(x.length(), y.length()), 1.0, 1e-9);
  EXPECT_NEAR(x.low + x.high, 1.0, 1e-9);
  EXPECT_NEAR(y.low + y.high, 1.0, 1e-9);
}

TEST(StressLayout, APathIsALine) {
  for (const int size : {2, 3, 10, 60, 300}) {
    SCOPED_TRACE(size);
    const std::vector<Point> points = stress_layout(size, path(size));
    expect_fills_the_unit_square(points);
    EXPECT_LT(extent_y(points).length(), 0.02);
    for (int i = 1; i < size; ++i) {
      EXPECT_GT(distance(points[0], points[i]), distance(points[0], points[i - 1]));
      EXPECT_NEAR(points[i].x - points[i - 1].x, 1.0 / (size - 1), 0.3 / (size - 1));
    }
  }
}

TEST(StressLayout, ARingIsARing) {
  for (const int size : {3, 4, 5, 12, 41, 200}) {
    SCOPED_TRACE(size);
    const std::vector<Point> points = stress_layout(size, ring(size));
    expect_fills_the_unit_square(points);
    Point middle{};
    for (const Point& p : points) middle = {middle.x + p.x / size, middle.y + p.y / size};
    const double radius = distance(points[0], middle);
    for (int i = 0; i < size; ++i) {
      EXPECT_NEAR(distance(points[i], middle), radius, 0.05 * radius);
      const double next = distance(points[i], points[(i + 1) % size]);
      for (int j = 0; j < size; ++j) {
        if (j == i || (j + 1) % size == i || (i + 1) % size == j) continue;
        EXPECT_LT(next, distance(points[i], points[j]));
      }
    }
  }
}

// Every cell keeps its corners in the same sense of turning, and its sides about equally long.
TEST(StressLayout, AGridIsUnfolded) {
  for (const auto& [rows, columns] : {std::pair{2, 2}, {3, 8}, {12, 12}, {5, 40}, {20, 20}}) {
    SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(columns));
    const std::vector<Point> points = stress_layout(rows * columns, grid(rows, columns));
    expect_fills_the_unit_square(points);
    int left_turns = 0;
    for (int row = 0; row + 1 < rows; ++row) {
      for (int column = 0; column + 1 < columns; ++column) {
        const Point& corner = points[row * columns + column];
        const Point& right = points[row * columns + column + 1];
        const Point& down = points[(row + 1) * columns + column];
        const double turn =
            (right.x - corner.x) * (down.y - corner.y) - (right.y - corner.y) * (down.x - corner.x);
        left_turns += turn > 0 ? 1 : 0;
      }
    }
    EXPECT_TRUE(left_turns == 0 || left_turns == (rows - 1) * (columns - 1)) << left_turns;
    double shortest = 10, longest = 0;
    for (const auto& [from, to] : grid(rows, columns)) {
      shortest = std::min(shortest, distance(points[from], points[to]));
      longest = std::max(longest, distance(points[from], points[to]));
    }
    EXPECT_LT(longest, 2.0 * shortest);
    EXPECT_GE(extent_x(points).length(), extent_y(points).length() - 1e-9);
  }
}

TEST(StressLayout, AChainOfCliquesIsAChain) {
  constexpr int kCliques = 6;
  constexpr int kSize = 10;
  Edges edges;
  for (int c = 0; c < kCliques; ++c) add(edges, clique(kSize, c * kSize));
  for (int c = 0; c + 1 < kCliques; ++c) {
    edges.emplace_back(kCliques * kSize + c, c * kSize + kSize - 1);
    edges.emplace_back(kCliques * kSize + c, (c + 1) * kSize);
  }
  const std::vector<Point> points = stress_layout(kCliques * kSize + kCliques - 1, edges);
  expect_fills_the_unit_square(points);
  EXPECT_LT(extent_y(points).length(), 0.5);
  // Left to right: a clique, its bridge, the next clique.
  for (int c = 0; c + 1 < kCliques; ++c) {
    const auto begin = points.begin() + c * kSize;
    const double bridge = points[kCliques * kSize + c].x;
    EXPECT_LT(extent_x({begin, begin + kSize}).high, bridge);
    EXPECT_GT(extent_x({begin + kSize, begin + 2 * kSize}).low, bridge);
  }
  // Members of a clique stay visible.
  for (int i = 0; i < kCliques * kSize; ++i) {
    for (int j = 0; j < i; ++j) EXPECT_GT(distance(points[i], points[j]), 0.01);
  }
}

TEST(StressLayout, NodesThatLookAlikeDoNotFallTogether) {
  Edges star, bipartite;
  for (int i = 1; i < 12; ++i) star.emplace_back(0, i);
  for (int i = 0; i < 6; ++i) {
    for (int j = 6; j < 12; ++j) bipartite.emplace_back(i, j);
  }
  for (const Edges& edges : {star, bipartite, clique(12)}) {
    const std::vector<Point> points = stress_layout(12, edges);
    expect_fills_the_unit_square(points);
    for (int i = 0; i < 12; ++i) {
      for (int j = 0; j < i; ++j) EXPECT_GT(distance(points[i], points[j]), 0.03);
    }
  }
}

// The five leaves take the second direction for themselves: the single one starts on the path.
TEST(StressLayout, ALeafStandsOffThePath) {
  constexpr int kPath = 60;
  Edges edges = path(kPath);
  for (int i = 0; i < 5; ++i) edges.emplace_back(20, kPath + i);
  edges.emplace_back(40, kPath + 5);
  const std::vector<Point> points = stress_layout(kPath + 6, edges);
  const double hop = distance(points[0], points[1]);
  for (int i = 0; i < kPath; ++i) EXPECT_GT(distance(points[i], points[kPath + 5]), 0.5 * hop);
}

double stress(const std::vector<Point>& points, const std::vector<std::vector<int>>& hops,
              double scale) {
  double sum = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const double error = scale * distance(points[i], points[j]) / hops[i][j] - 1;
      sum += error * error;
    }
  }
  return sum;
}

// Stress by definition, with hops by Floyd and Warshall: no small move of a node lowers it.
TEST(StressLayout, IsALocalMinimumOfTheStress) {
  constexpr int kNodes = 15;
  Edges edges = ring(kNodes);
  add(edges, {{0, 4}, {2, 9}, {3, 11}});
  std::vector<std::vector<int>> hops(kNodes, std::vector<int>(kNodes, kNodes));
  for (int i = 0; i < kNodes; ++i) hops[i][i] = 0;
  for (const auto& [from, to] : edges) hops[from][to] = hops[to][from] = 1;
  for (int k = 0; k < kNodes; ++k) {
    for (int i = 0; i < kNodes; ++i) {
      for (int j = 0; j < kNodes; ++j) {
        hops[i][j] = std::min(hops[i][j], hops[i][k] + hops[k][j]);
      }
    }
  }
  const std::vector<Point> points = stress_layout(kNodes, edges);
  // The scale that was taken out: the best one.
  double product = 0, square = 0;
  for (int i = 0; i < kNodes; ++i) {
    for (int j = 0; j < i; ++j) {
      const double ratio = distance(points[i], points[j]) / hops[i][j];
      product += ratio;
      square += ratio * ratio;
    }
  }
  const double scale = product / square;
  const double reached = stress(points, hops, scale);
  for (int i = 0; i < kNodes; ++i) {
    for (int direction = 0; direction < 8; ++direction) {
      std::vector<Point> moved = points;
      const double angle = direction * std::numbers::pi / 4;
      moved[i].x += 0.2 / scale * std::cos(angle);
      moved[i].y += 0.2 / scale * std::sin(angle);
      EXPECT_GT(stress(moved, hops, scale), reached);
    }
  }
}

TEST(StressLayout, ComponentsStandApartInARow) {
  Edges edges = ring(8);
  add(edges, clique(5, 8));
  add(edges, path(6, 13));
  const std::vector<int> begin = {0, 8, 13, 19, 20, 21};  // and two single nodes
  const std::vector<Point> points = stress_layout(21, edges);
  expect_fills_the_unit_square(points);
  for (std::size_t c = 1; c + 1 < begin.size(); ++c) {
    const Extent before = extent_x({points.begin() + begin[c - 1], points.begin() + begin[c]});
    const Extent here = extent_x({points.begin() + begin[c], points.begin() + begin[c + 1]});
    EXPECT_GT(here.low, before.high + 0.01);
  }
  EXPECT_NEAR(distance(points[13], points[14]), distance(points[18], points[19]), 0.02);  // a hop
}

TEST(StressLayout, DependsOnTheGraphAlone) {
  Edges edges = grid(4, 6);
  const std::vector<Point> points = stress_layout(24, edges);
  const auto expect_same = [&](const Edges& other) {
    const std::vector<Point> again = stress_layout(24, other);
    for (std::size_t i = 0; i < points.size(); ++i) {
      EXPECT_EQ(again[i].x, points[i].x);
      EXPECT_EQ(again[i].y, points[i].y);
    }
  };
  expect_same(edges);
  std::reverse(edges.begin(), edges.end());
  for (auto& [from, to] : edges) std::swap(from, to);
  expect_same(edges);
  add(edges, edges);
  add(edges, {{3, 3}, {0, 0}});
  expect_same(edges);
}

TEST(StressLayout, TakesTheSmallest) {
  EXPECT_TRUE(stress_layout(0, {}).empty());
  const std::vector<Point> one = stress_layout(1, {});
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].x, 0.5);
  EXPECT_EQ(one[0].y, 0.5);
  expect_fills_the_unit_square(stress_layout(2, {}));
  expect_fills_the_unit_square(stress_layout(kMaxLayoutNodes, {}));
}

TEST(StressLayout, RefusesWrongArguments) {
  EXPECT_THAT([] { stress_layout(2001, {}); },
              ThrowsMessage<std::invalid_argument>(
                  StrEq("stress_layout: expected 0 to 2000 nodes, got 2001")));
  EXPECT_THROW(stress_layout(-1, {}), std::invalid_argument);
  EXPECT_THAT(
      [] {
        stress_layout(3, Edges{{0, 3}});
      },
      ThrowsMessage<std::invalid_argument>(
          StrEq("stress_layout: expected edges among 3 nodes, got 0 - 3")));
  EXPECT_THROW(stress_layout(3, Edges{{-1, 0}}), std::invalid_argument);
}

}  // namespace
}  // namespace mpssm::report
