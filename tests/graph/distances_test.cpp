// SPDX-License-Identifier: MIT
// Distances and components against Floyd-Warshall.
#include "mpssm/graph/distances.h"

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpssm/graph/generators.h"

#include "tests/graph/dense.h"

namespace mpssm::graph {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StrEq;
using ::testing::ThrowsMessage;

using Table = std::vector<std::vector<std::int32_t>>;

// table[i][j]: hops from i to j.
Table floyd_warshall(const Graph& graph) {
  const std::int64_t n = graph.num_nodes();
  constexpr std::int32_t kFar = 1 << 20;
  Table table(n, std::vector<std::int32_t>(n, kFar));
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t e = graph.row_ptr()[i]; e < graph.row_ptr()[i + 1]; ++e) {
      table[graph.col()[e]][i] = 1;
    }
  }
  for (std::int64_t i = 0; i < n; ++i) table[i][i] = 0;
  for (std::int64_t k = 0; k < n; ++k) {
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        table[i][j] = std::min(table[i][j], table[i][k] + table[k][j]);
      }
    }
  }
  for (auto& row : table) std::ranges::replace(row, kFar, kUnreachable);
  return table;
}

// Sparse enough to be disconnected, with self-loops.
std::vector<Graph> sample_graphs() {
  std::vector<Graph> graphs;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    EdgeList edges = testing::random_edges(15, 18, seed);
    graphs.push_back(Graph::from_edges(edges, Direction::kDirected));
    edges.weight.clear();
    graphs.push_back(Graph::from_edges(edges));
  }
  return graphs;
}

TEST(Distances, EqualFloydWarshall) {
  for (const Graph& graph : sample_graphs()) {
    const Table table = floyd_warshall(graph);
    for (std::int64_t i = 0; i < graph.num_nodes(); ++i) {
      EXPECT_EQ(distances_from(graph, i), table[i]);
    }
  }
}

TEST(Distances, FollowTheEdges) {
  const Graph graph = Graph::from_edges(
      {.num_nodes = 3, .src = {0, 1}, .dst = {1, 2}, .weight = {}}, Direction::kDirected);
  EXPECT_THAT(distances_from(graph, 0), ElementsAre(0, 1, 2));
  EXPECT_THAT(distances_from(graph, 2), ElementsAre(kUnreachable, kUnreachable, 0));
}

TEST(Distances, RefuseUnknownNodes) {
  EXPECT_THAT(
      [] { distances_from(make_path(3), 3); },
      ThrowsMessage<std::out_of_range>(StrEq("distances_from: node 3 out of range [0, 3)")));
  EXPECT_THAT(
      [] { distances_from(Graph(), 0); },
      ThrowsMessage<std::out_of_range>(StrEq("distances_from: node 0 out of range [0, 0)")));
  EXPECT_THROW(distances_from(make_path(3), -1), std::out_of_range);
}

TEST(Eccentricities, AreTheLargestFiniteDistances) {
  for (const Graph& graph : sample_graphs()) {
    const Table table = floyd_warshall(graph);
    const std::vector<std::int32_t> result = eccentricities(graph);
    ASSERT_EQ(std::ssize(result), graph.num_nodes());
    for (std::size_t i = 0; i < result.size(); ++i) {
      EXPECT_EQ(result[i], *std::ranges::max_element(table[i]));
    }
    EXPECT_EQ(diameter(graph), *std::ranges::max_element(result));
  }
}

TEST(Diameter, OfKnownShapes) {
  EXPECT_EQ(diameter(make_path(10)), 9);
  EXPECT_EQ(diameter(make_ring(10)), 5);
  EXPECT_EQ(diameter(make_ring(11)), 5);
  EXPECT_EQ(diameter(make_grid(4, 7)), 9);
  EXPECT_EQ(diameter(make_board(4, 7)), 6);
  EXPECT_EQ(diameter(make_complete(5)), 1);
  EXPECT_EQ(diameter(make_path(1)), 0);
  EXPECT_EQ(diameter(Graph()), 0);
  EXPECT_THAT(eccentricities(Graph()), IsEmpty());
}

TEST(Diameter, OfADisconnectedGraphIsThatOfItsWidestPart) {
  EXPECT_EQ(diameter(make_batch(std::vector<Graph>{make_path(4), make_path(9), make_star(5)})), 8);
}

TEST(Components, AreNumberedByFirstAppearance) {
  const Graph graph = Graph::from_edges(
      {.num_nodes = 6, .src = {5, 4, 2}, .dst = {0, 1, 4}, .weight = {}}, Direction::kDirected);
  const Components result = components(graph);
  EXPECT_THAT(result.of_node, ElementsAre(0, 1, 1, 2, 1, 0));
  EXPECT_EQ(result.count, 3);
}

TEST(Components, JoinExactlyTheNodesWithAWayBetweenThem) {
  for (const Graph& graph : sample_graphs()) {
    if (!graph.is_symmetric()) continue;
    const Table table = floyd_warshall(graph);
    const Components result = components(graph);
    for (std::size_t i = 0; i < table.size(); ++i) {
      for (std::size_t j = 0; j < table.size(); ++j) {
        EXPECT_EQ(result.of_node[i] == result.of_node[j], table[i][j] != kUnreachable);
      }
    }
    EXPECT_EQ(result.count, *std::ranges::max_element(result.of_node) + 1);
  }
}

TEST(Components, TakeDirectedEdgesBothWays) {
  // 0 -> 1 <- 2: no way between 0 and 2, yet one component.
  const Graph graph = Graph::from_edges(
      {.num_nodes = 3, .src = {0, 2}, .dst = {1, 1}, .weight = {}}, Direction::kDirected);
  EXPECT_THAT(components(graph).of_node, Each(0));
  EXPECT_TRUE(is_connected(graph));
}

TEST(Components, OneNodeIsConnectedAndNoneIsNot) {
  EXPECT_TRUE(is_connected(make_path(1)));
  EXPECT_FALSE(is_connected(Graph()));
  EXPECT_FALSE(is_connected(Graph::from_edges({.num_nodes = 2})));
  EXPECT_EQ(components(Graph()).count, 0);
}

TEST(Components, OfALongPathAreFoundQuickly) {
  // Union by index alone would make long chains here without path halving.
  const Components result = components(make_path(500'000));
  EXPECT_EQ(result.count, 1);
}

}  // namespace
}  // namespace mpssm::graph
