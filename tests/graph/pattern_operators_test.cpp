// SPDX-License-Identifier: MIT
#include "mpssm/graph/pattern_operators.h"

#include <cmath>

#include <gtest/gtest.h>

#include "mpssm/graph/distances.h"
#include "mpssm/graph/generators.h"

#include "tests/graph/dense.h"

namespace mpssm::graph {
namespace {

TEST(NeighbourMean, AveragesOverAllButTheNodeItself) {
  const Gso gso = make_gso(make_random_connected(20, 40, 3));  // with self-loops
  const Gso mean = neighbour_mean(gso);
  for (std::int64_t i = 0; i < gso.num_nodes(); ++i) {
    const std::int64_t begin = mean.row_ptr()[i];
    const std::int64_t count = mean.row_ptr()[i + 1] - begin;
    EXPECT_EQ(count, gso.row_ptr()[i + 1] - gso.row_ptr()[i] - 1);
    for (std::int64_t e = begin; e < begin + count; ++e) {
      EXPECT_NE(mean.col()[e], i);
      EXPECT_DOUBLE_EQ(mean.values<double>()[e], 1.0 / static_cast<double>(count));
    }
  }
}

TEST(NeighbourMean, GivesALonelyNodeNothing) {
  const Gso mean = neighbour_mean(make_gso(Graph::from_edges({.num_nodes = 2})));
  EXPECT_EQ(mean.num_nonzeros(), 0);
  EXPECT_EQ(mean.num_nodes(), 2);
}

TEST(ExactDistance, HasEachPairAtItsDistanceAndOnlyThere) {
  const Graph directed = Graph::from_edges(
      {.num_nodes = 5, .src = {0, 1, 2, 3, 0}, .dst = {1, 2, 3, 4, 2}}, Direction::kDirected);
  const std::vector<Graph> two = {make_path(4), make_ring(5)};
  for (const Graph& graph : {make_random_connected(30, 45, 5), make_batch(two), directed}) {
    const Gso gso = make_gso(graph, {.kind = GsoKind::kAdjacency});
    const std::vector<Gso> at = exact_distance_operators(gso, 3);
    ASSERT_EQ(at.size(), 3U);
    for (std::int64_t j = 0; j < graph.num_nodes(); ++j) {
      const std::vector<std::int32_t> hops = distances_from(graph, j);
      for (std::int64_t i = 0; i < graph.num_nodes(); ++i) {
        for (std::int64_t d = 1; d <= 3; ++d) {
          const auto row = at[d - 1].col().subspan(
              at[d - 1].row_ptr()[i], at[d - 1].row_ptr()[i + 1] - at[d - 1].row_ptr()[i]);
          const bool is_there = std::find(row.begin(), row.end(), j) != row.end();
          EXPECT_EQ(is_there, hops[i] == d) << i << " from " << j << " at " << d;
        }
      }
    }
  }
}

TEST(ExactDistance, IsNormalisedByHowManyAreThere) {
  // From one end of a path of three the other end is the only node two hops away.
  const std::vector<Gso> at = exact_distance_operators(make_gso(make_path(3)), 2);
  ASSERT_EQ(at[1].num_nonzeros(), 2);
  EXPECT_DOUBLE_EQ(at[1].values<double>()[0], 1.0);
  EXPECT_DOUBLE_EQ(at[0].values<double>()[0], 1.0 / std::sqrt(2.0));
  EXPECT_TRUE(at[0].is_symmetric());
}

}  // namespace
}  // namespace mpssm::graph
