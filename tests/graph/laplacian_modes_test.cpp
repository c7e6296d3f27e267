// SPDX-License-Identifier: MIT
// Lowest modes of the Laplacian against the full decomposition and against their definition.
#include "mpssm/graph/laplacian_modes.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "mpssm/graph/generators.h"
#include "mpssm/graph/gso.h"
#include "mpssm/graph/spectrum.h"

namespace mpssm::graph {
namespace {

std::vector<std::int32_t> all_nodes(const Graph& graph) {
  std::vector<std::int32_t> nodes(static_cast<std::size_t>(graph.num_nodes()));
  std::iota(nodes.begin(), nodes.end(), 0);
  return nodes;
}

/// Residuals stop at 1e-7, eigenvalues are better by their square.
constexpr double kVectors = 2e-7;
constexpr double kValues = 1e-10;

void expect_lowest_modes(const Graph& graph, std::int64_t count) {
  const LaplacianModes modes = laplacian_modes(graph, all_nodes(graph), count);
  const std::int64_t n = graph.num_nodes();
  const std::int64_t there = std::min(count, n - 1);
  const Gso s = make_gso(graph, {.kind = GsoKind::kSymNormalizedNoLoops});
  const auto column = [&](std::int64_t k) {
    std::vector<double> x(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < n; ++i) x[i] = modes.vectors[i * count + k];
    return x;
  };
  const auto view = s.view<double>();
  for (std::int64_t k = 0; k < there; ++k) {
    const std::vector<double> x = column(k);
    for (std::int64_t i = 0; i < n; ++i) {
      double image = x[i];
      for (std::int64_t e = view.row_ptr[i]; e < view.row_ptr[i + 1]; ++e) {
        image -= view.value[e] * x[view.col[e]];
      }
      ASSERT_NEAR(image, modes.eigenvalues[k] * x[i], kVectors) << "mode " << k;
    }
    for (std::int64_t other = 0; other <= k; ++other) {
      const std::vector<double> y = column(other);
      const double product = std::inner_product(x.begin(), x.end(), y.begin(), 0.0);
      EXPECT_NEAR(product, other == k ? 1.0 : 0.0, 1e-10) << k << ", " << other;
    }
  }
  if (n <= 1024) {
    const auto& all = eigen_basis(s).eigenvalues;  // ascending, the trivial one last
    for (std::int64_t k = 0; k < there; ++k) {
      EXPECT_NEAR(modes.eigenvalues[k], 1.0 - all[n - 2 - k], kValues) << "mode " << k;
    }
  }
  for (std::int64_t k = there; k < count; ++k) {
    EXPECT_EQ(modes.eigenvalues[k], 0.0);
    for (const double entry : column(k)) EXPECT_EQ(entry, 0.0);
  }
}

TEST(LaplacianModes, AreTheLowestOfTheFullDecomposition) {
  expect_lowest_modes(make_path(2), 3);
  expect_lowest_modes(make_path(40), 8);
  expect_lowest_modes(make_path(700), 8);      // no gap between eigenvalues
  expect_lowest_modes(make_ring(300), 7);      // all come twice; the cut goes through a pair
  expect_lowest_modes(make_grid(20, 20), 12);  // many come twice
  expect_lowest_modes(make_star(200), 5);      // one comes 198 times
  expect_lowest_modes(make_power_law_tree(500, 1), 10);
  expect_lowest_modes(make_random_connected(600, 4000, 2), 6);
}

// A sparse inverse would be as good as dense here: Chebyshev polynomials do it.
TEST(LaplacianModes, AreFoundWithoutAnInverse) {
  expect_lowest_modes(make_erdos_renyi(3000, 0.05, 3), 4);
}

TEST(LaplacianModes, HaveTheClosedFormOfAPath) {
  constexpr std::int64_t kNodes = 900;
  const Graph ring = make_ring(kNodes);
  const LaplacianModes modes = laplacian_modes(ring, all_nodes(ring), 6);
  for (std::int64_t k = 0; k < 6; ++k) {
    const double angle = 2.0 * M_PI * static_cast<double>(k / 2 + 1) / kNodes;
    EXPECT_NEAR(modes.eigenvalues[k], 1.0 - std::cos(angle), 1e-11);
  }
}

TEST(LaplacianModes, TakeWeightsAndBothDirections) {
  // One way 2 -> 0 of weight 3 counts as both ways of weight 1.5; a loop counts nothing.
  const Graph one_way = Graph::from_edges(
      {.num_nodes = 3, .src = {0, 1, 2, 1}, .dst = {1, 0, 0, 1}, .weight = {-1, 1, 3, 5}},
      Direction::kDirected);
  const Graph both_ways = Graph::from_edges(
      {.num_nodes = 3, .src = {0, 2}, .dst = {1, 0}, .weight = {1, 1.5}}, Direction::kUndirected);
  const LaplacianModes a = laplacian_modes(one_way, all_nodes(one_way), 2);
  const LaplacianModes b = laplacian_modes(both_ways, all_nodes(both_ways), 2);
  for (int k = 0; k < 2; ++k) EXPECT_NEAR(a.eigenvalues[k], b.eigenvalues[k], 1e-12);
  for (int i = 0; i < 6; ++i) EXPECT_NEAR(a.vectors[i], b.vectors[i], 1e-12);
}

TEST(LaplacianModes, OfAPartAreThoseOfItAlone) {
  const Graph parts[] = {make_path(70), make_grid(9, 10)};
  const Graph batch = make_batch(parts);
  const auto nodes = nodes_of_parts(components(batch));
  ASSERT_EQ(nodes.size(), 2U);
  for (int p = 0; p < 2; ++p) {
    const LaplacianModes alone = laplacian_modes(parts[p], all_nodes(parts[p]), 5);
    const LaplacianModes inside = laplacian_modes(batch, nodes[p], 5);
    EXPECT_EQ(alone.vectors, inside.vectors);
    EXPECT_EQ(alone.eigenvalues, inside.eigenvalues);
  }
}

}  // namespace
}  // namespace mpssm::graph
