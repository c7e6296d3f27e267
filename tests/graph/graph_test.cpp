// SPDX-License-Identifier: MIT
// Graph: reading edge lists, counting, batches.
#include "mpssm/graph/graph.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/graph/dense.h"
#include "tests/support/scratch.h"

namespace mpssm::graph {
namespace {

using mpssm::testing::message_of;
using testing::Dense;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StrEq;
using ::testing::ThrowsMessage;
using testing::to_dense;

TEST(Graph, WithoutNodesIsOneEmptyGraph) {
  const Graph graph;
  EXPECT_EQ(graph.num_nodes(), 0);
  EXPECT_EQ(graph.num_entries(), 0);
  EXPECT_EQ(graph.num_edges(), 0);
  EXPECT_TRUE(graph.is_symmetric());
  EXPECT_FALSE(graph.is_weighted());
  EXPECT_THAT(graph.row_ptr(), ElementsAre(0));
  EXPECT_THAT(graph.graph_ptr(), ElementsAre(0, 0));
  EXPECT_EQ(graph.num_graphs(), 1);
  EXPECT_THAT(Graph::from_edges({}).row_ptr(), ElementsAre(0));
}

TEST(Graph, WithoutEdgesKeepsItsNodes) {
  const Graph graph = Graph::from_edges({.num_nodes = 3});
  EXPECT_EQ(graph.num_nodes(), 3);
  EXPECT_THAT(graph.row_ptr(), ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(graph.graph_ptr(), ElementsAre(0, 3));
}

TEST(Graph, RowsListTheSendersSorted) {
  const Graph graph =
      Graph::from_edges({.num_nodes = 4, .src = {3, 0, 2, 1}, .dst = {1, 1, 1, 0}, .weight = {}},
                        Direction::kDirected);
  EXPECT_THAT(graph.row_ptr(), ElementsAre(0, 1, 4, 4, 4));
  EXPECT_THAT(graph.col(), ElementsAre(1, 0, 2, 3));
  EXPECT_THAT(graph.weight(), ElementsAre(1.0, 1.0, 1.0, 1.0));
}

TEST(Graph, WeightsFollowTheirEdges) {
  const Graph graph = Graph::from_edges(
      {.num_nodes = 3, .src = {2, 0, 1}, .dst = {0, 2, 0}, .weight = {0.5, -2.0, 4.0}},
      Direction::kDirected);
  EXPECT_EQ(to_dense(graph), (Dense{{0.0, 4.0, 0.5}, {0.0, 0.0, 0.0}, {-2.0, 0.0, 0.0}}));
  EXPECT_TRUE(graph.is_weighted());
}

TEST(Graph, UndirectedReadsEachEdgeBothWays) {
  const Graph graph =
      Graph::from_edges({.num_nodes = 3, .src = {0, 2}, .dst = {1, 1}, .weight = {2.0, 3.0}});
  EXPECT_EQ(to_dense(graph), (Dense{{0.0, 2.0, 0.0}, {2.0, 0.0, 3.0}, {0.0, 3.0, 0.0}}));
  EXPECT_TRUE(graph.is_symmetric());
  EXPECT_EQ(graph.num_edges(), 2);
  EXPECT_EQ(graph.num_entries(), 4);
}

TEST(Graph, RepeatedEdgesCountOnceWithoutWeights) {
  const EdgeList edges{.num_nodes = 2, .src = {0, 0, 0}, .dst = {1, 1, 1}, .weight = {}};
  EXPECT_EQ(to_dense(Graph::from_edges(edges)), (Dense{{0.0, 1.0}, {1.0, 0.0}}));
  EXPECT_EQ(Graph::from_edges(edges, Direction::kDirected).num_edges(), 1);
}

TEST(Graph, RepeatedEdgesAddTheirWeights) {
  const EdgeList edges{
      .num_nodes = 2, .src = {0, 1, 0, 1}, .dst = {1, 1, 1, 1}, .weight = {1.0, 4.0, 2.0, 5.0}};
  EXPECT_EQ(to_dense(Graph::from_edges(edges)), (Dense{{0.0, 3.0}, {3.0, 9.0}}));
  EXPECT_EQ(to_dense(Graph::from_edges(edges, Direction::kDirected)),
            (Dense{{0.0, 0.0}, {3.0, 9.0}}));
}

TEST(Graph, UndirectedDoublesNeitherLoopsNorEdgesListedBothWays) {
  const Graph graph = Graph::from_edges(
      {.num_nodes = 3, .src = {0, 1, 2, 1}, .dst = {1, 0, 2, 2}, .weight = {2.0, 2.0, 7.0, 3.0}});
  EXPECT_EQ(to_dense(graph), (Dense{{0.0, 2.0, 0.0}, {2.0, 0.0, 3.0}, {0.0, 3.0, 7.0}}));
  EXPECT_EQ(graph.num_self_loops(), 1);
  EXPECT_EQ(graph.num_edges(), 3);
  EXPECT_EQ(graph.num_entries(), 5);
}

TEST(Graph, DirectedCountsEntries) {
  const Graph graph = Graph::from_edges(
      {.num_nodes = 2, .src = {0, 1, 1}, .dst = {1, 0, 1}, .weight = {}}, Direction::kDirected);
  EXPECT_EQ(graph.num_edges(), 3);
  EXPECT_EQ(graph.num_self_loops(), 1);
}

TEST(Graph, DirectedIsSymmetricOnlyIfItEqualsItsTranspose) {
  const auto is_symmetric = [](double there, double back) {
    return Graph::from_edges(
               {.num_nodes = 2, .src = {0, 1}, .dst = {1, 0}, .weight = {there, back}},
               Direction::kDirected)
        .is_symmetric();
  };
  EXPECT_TRUE(is_symmetric(2.0, 2.0));
  EXPECT_FALSE(is_symmetric(2.0, 3.0));
  EXPECT_FALSE(Graph::from_edges({.num_nodes = 2, .src = {0}, .dst = {1}, .weight = {}},
                                 Direction::kDirected)
                   .is_symmetric());
}

TEST(Graph, EqualsDenseAssembly) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const EdgeList edges = testing::random_edges(7, 30, seed);
    Dense expected = testing::zeros(7);
    for (std::size_t e = 0; e < edges.src.size(); ++e) {
      expected[edges.dst[e]][edges.src[e]] += edges.weight[e];
    }
    const Graph graph = Graph::from_edges(edges, Direction::kDirected);
    EXPECT_EQ(to_dense(graph), expected);
    for (std::int64_t i = 0; i < 7; ++i) {
      const auto row =
          graph.col().subspan(graph.row_ptr()[i], graph.row_ptr()[i + 1] - graph.row_ptr()[i]);
      EXPECT_EQ(std::ranges::adjacent_find(row, std::greater_equal<>()), row.end());
    }
  }
}

TEST(Graph, UndirectedIsTheUnionOfBothReadings) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    EdgeList edges = testing::random_edges(7, 12, seed);
    edges.weight.clear();
    Dense expected = testing::zeros(7);
    for (std::size_t e = 0; e < edges.src.size(); ++e) {
      expected[edges.dst[e]][edges.src[e]] = expected[edges.src[e]][edges.dst[e]] = 1.0;
    }
    EXPECT_EQ(to_dense(Graph::from_edges(edges)), expected);
  }
}

// Entries in rows, each the sum of its edges in the order of the list, by the plainest means.
std::map<std::pair<std::int64_t, std::int64_t>, double> entries_of(const EdgeList& edges,
                                                                   Direction direction) {
  std::map<std::pair<std::int64_t, std::int64_t>, double> forward;
  for (std::size_t e = 0; e < edges.src.size(); ++e) {
    const double weight = edges.weight.empty() ? 1.0 : edges.weight[e];
    const auto [entry, is_new] = forward.emplace(std::pair(edges.dst[e], edges.src[e]), weight);
    if (!is_new && !edges.weight.empty()) entry->second += weight;
  }
  auto entries = forward;
  for (const auto& [ends, weight] : forward) {
    if (direction == Direction::kUndirected)
      entries.emplace(std::pair(ends.second, ends.first), weight);
  }
  return entries;
}

std::map<std::pair<std::int64_t, std::int64_t>, double> entries_of(const Graph& graph) {
  std::map<std::pair<std::int64_t, std::int64_t>, double> entries;
  for (std::int64_t i = 0; i < graph.num_nodes(); ++i) {
    for (std::int64_t e = graph.row_ptr()[i]; e < graph.row_ptr()[i + 1]; ++e) {
      entries.emplace_hint(entries.end(), std::pair(i, graph.col()[e]), graph.weight()[e]);
    }
  }
  return entries;
}

CompactEdgeList compact(const EdgeList& edges) {
  return {.num_nodes = edges.num_nodes,
          .src = {edges.src.begin(), edges.src.end()},
          .dst = {edges.dst.begin(), edges.dst.end()},
          .weight = edges.weight};
}

// Node 0 has a row of hundreds, others of a few; edges repeat, and the sums of their weights have
// bits that depend on the order.
EdgeList edges_with_a_hub(std::int64_t num_nodes, bool weighted, std::uint64_t seed) {
  EdgeList edges = testing::random_edges(num_nodes, 6 * num_nodes, seed);
  for (std::size_t e = 0; e < edges.src.size(); ++e) {
    if (e % 3 == 0) edges.src[e] = 0;
    if (e % 3 == 1) edges.dst[e] = 0;
    // One direction only: two would have to have one sum.
    if (edges.src[e] > edges.dst[e]) std::swap(edges.src[e], edges.dst[e]);
  }
  edges.weight = testing::random_vector(std::ssize(edges.src), seed);
  if (!weighted) edges.weight.clear();
  return edges;
}

TEST(Graph, EqualsThePlainestAssemblyBitByBit) {
  for (const std::int64_t num_nodes : {1, 2, 9, 200}) {
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      for (const bool weighted : {false, true}) {
        const EdgeList edges = edges_with_a_hub(num_nodes, weighted, seed);
        for (const Direction direction : {Direction::kUndirected, Direction::kDirected}) {
          const auto expected = entries_of(edges, direction);
          const Graph graph = Graph::from_edges(edges, direction);
          EXPECT_EQ(entries_of(graph), expected);
          EXPECT_EQ(graph.num_entries(), std::ssize(expected));
          const Graph taken = Graph::take_edges(compact(edges), direction);
          EXPECT_EQ(entries_of(taken), expected);
          EXPECT_EQ(taken.num_entries(), std::ssize(expected));
          EXPECT_EQ(taken.num_edges(), graph.num_edges());
          EXPECT_EQ(taken.is_symmetric(), graph.is_symmetric());
          EXPECT_EQ(taken.is_weighted(), weighted);
        }
      }
    }
  }
}

TEST(Graph, KnowsWhetherItEqualsItsTranspose) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    // Few nodes and many edges: some of these graphs are symmetric by chance.
    EdgeList edges = testing::random_edges(3, 1 + seed % 9, seed);
    if (seed % 2 == 0) edges.weight.clear();
    const Graph graph = Graph::from_edges(edges, Direction::kDirected);
    const Dense dense = to_dense(graph);
    EXPECT_EQ(graph.is_symmetric(), dense == testing::transposed(dense)) << seed;
  }
}

TEST(Graph, TakenEdgesAreCheckedAlike) {
  const EdgeList outside{.num_nodes = 2, .src = {0, 2}, .dst = {1, 1}, .weight = {}};
  const EdgeList conflict{.num_nodes = 2, .src = {0, 1}, .dst = {1, 0}, .weight = {1.0, 2.0}};
  for (const EdgeList& edges : {outside, conflict}) {
    EXPECT_EQ(message_of([&] { Graph::take_edges(compact(edges)); }),
              message_of([&] { Graph::from_edges(edges); }));
  }
}

TEST(Graph, CopiesShareTheirArrays) {
  const Graph graph = Graph::from_edges({.num_nodes = 2, .src = {0}, .dst = {1}, .weight = {}});
  const Graph copy = graph;
  EXPECT_EQ(copy.col().data(), graph.col().data());
}

TEST(Graph, RefusesBadEdgeListsByName) {
  const auto read = [](EdgeList edges) { return [=] { Graph::from_edges(edges); }; };
  EXPECT_THAT(
      read({.num_nodes = 9, .src = {0, 9}, .dst = {1, 1}, .weight = {}}),
      ThrowsMessage<base::Error>(StrEq("Graph::from_edges: edge 1: node 9 out of range [0, 9)")));
  EXPECT_THAT(
      read({.num_nodes = 9, .src = {0}, .dst = {-1}, .weight = {}}),
      ThrowsMessage<base::Error>(StrEq("Graph::from_edges: edge 0: node -1 out of range [0, 9)")));
  EXPECT_THAT(read({.num_nodes = 2, .src = {0, 1}, .dst = {1}, .weight = {}}),
              ThrowsMessage<base::Error>(
                  StrEq("Graph::from_edges: expected dst of size 2 (the size of src), got 1")));
  EXPECT_THAT(read({.num_nodes = 2, .src = {0}, .dst = {1}, .weight = {1.0, 2.0}}),
              ThrowsMessage<base::Error>(
                  StrEq("Graph::from_edges: expected weight of size 1 (the size of src), got 2")));
  EXPECT_THAT(read({.num_nodes = 2,
                    .src = {0},
                    .dst = {1},
                    .weight = {std::numeric_limits<double>::infinity()}}),
              ThrowsMessage<base::Error>(
                  StrEq("Graph::from_edges: edge 0: expected a finite weight, got inf")));
  EXPECT_THAT(read({.num_nodes = -1}),
              ThrowsMessage<base::Error>(
                  StrEq("Graph::from_edges: expected num_nodes in [0, 2147483647], got -1")));
  EXPECT_THAT(read({.num_nodes = std::int64_t{1} << 31}),
              ThrowsMessage<base::Error>(StrEq(
                  "Graph::from_edges: expected num_nodes in [0, 2147483647], got 2147483648")));
}

TEST(Graph, RefusesTwoWeightsForOneUndirectedEdge) {
  const EdgeList edges{
      .num_nodes = 3, .src = {0, 2, 1}, .dst = {1, 0, 2}, .weight = {1.0, 2.0, 1.0}};
  EXPECT_NO_THROW(Graph::from_edges(edges));
  EdgeList conflict = edges;
  conflict.src.push_back(1);
  conflict.dst.push_back(0);
  conflict.weight.push_back(5.0);
  EXPECT_THAT([&] { Graph::from_edges(conflict); },
              ThrowsMessage<base::Error>(
                  StrEq("Graph::from_edges: edge 3: weight 5 from node 1 to node 0, but 1 "
                        "backwards; expected one weight, or Direction::kDirected")));
  EXPECT_NO_THROW(Graph::from_edges(conflict, Direction::kDirected));
}

TEST(Batch, IsBlockDiagonal) {
  const Graph a = Graph::from_edges(testing::random_edges(4, 9, 1), Direction::kDirected);
  const Graph b = Graph::from_edges({.num_nodes = 3, .src = {0}, .dst = {2}, .weight = {}});
  const Graph batch = make_batch(std::vector<Graph>{a, Graph(), b});
  Dense expected = testing::zeros(7);
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) expected[i][j] = to_dense(a)[i][j];
  }
  expected[4][6] = expected[6][4] = 1.0;
  EXPECT_EQ(to_dense(batch), expected);
  EXPECT_THAT(batch.graph_ptr(), ElementsAre(0, 4, 4, 7));
  EXPECT_EQ(batch.num_graphs(), 3);
  EXPECT_EQ(batch.num_edges(), a.num_edges() + 1);
  EXPECT_EQ(batch.num_self_loops(), a.num_self_loops());
  EXPECT_TRUE(batch.is_weighted());
  EXPECT_FALSE(batch.is_symmetric());
  EXPECT_TRUE(make_batch(std::vector<Graph>{b, b}).is_symmetric());
}

TEST(Batch, Nests) {
  const Graph pair = Graph::from_edges({.num_nodes = 2, .src = {0}, .dst = {1}, .weight = {}});
  const Graph one = make_batch(std::vector<Graph>{pair});
  const Graph nested =
      make_batch(std::vector<Graph>{pair, make_batch(std::vector<Graph>{pair, pair}), one});
  const Graph flat = make_batch(std::vector<Graph>(4, pair));
  EXPECT_EQ(to_dense(nested), to_dense(flat));
  EXPECT_THAT(nested.graph_ptr(), ElementsAre(0, 2, 4, 6, 8));
}

TEST(Batch, OfNothingHasNoGraph) {
  const Graph batch = make_batch({});
  EXPECT_EQ(batch.num_graphs(), 0);
  EXPECT_EQ(batch.num_nodes(), 0);
  EXPECT_THAT(batch.col(), IsEmpty());
}

TEST(Batch, RefusesMoreNodesThanColumnsCanName) {
  const Graph half = Graph::from_edges({.num_nodes = 1 << 16});
  EXPECT_THAT([&] { make_batch(std::vector<Graph>(1 << 15, half)); },
              ThrowsMessage<std::invalid_argument>(
                  StrEq("make_batch: expected at most 2147483647 nodes in all, got 2147483648")));
}

}  // namespace
}  // namespace mpssm::graph
