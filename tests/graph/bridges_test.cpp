// SPDX-License-Identifier: MIT
// Bridges against the definition: take an edge away and see what falls apart.
#include "mpssm/graph/bridges.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpssm/base/random.h"
#include "mpssm/graph/distances.h"
#include "mpssm/graph/generators.h"

namespace mpssm::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Ends = std::pair<std::int32_t, std::int32_t>;  // smaller first

// `graph` without the edge {a, b}.
Graph without(const Graph& graph, Ends gone) {
  EdgeList edges{.num_nodes = graph.num_nodes()};
  for (std::int32_t i = 0; i < graph.num_nodes(); ++i) {
    for (std::int64_t e = graph.row_ptr()[i]; e < graph.row_ptr()[i + 1]; ++e) {
      const std::int32_t j = graph.col()[e];
      if (j > i || Ends(j, i) == gone) continue;
      edges.src.push_back(i);
      edges.dst.push_back(j);
    }
  }
  return Graph::from_edges(edges);
}

std::vector<Ends> edges_of(const Graph& graph) {
  std::vector<Ends> edges;
  for (std::int32_t i = 0; i < graph.num_nodes(); ++i) {
    for (std::int64_t e = graph.row_ptr()[i]; e < graph.row_ptr()[i + 1]; ++e) {
      if (graph.col()[e] <= i) edges.emplace_back(graph.col()[e], i);
    }
  }
  return edges;
}

// Each bridge with the components that are left without it, by the definition.
std::map<Ends, Components> cuts_of(const Graph& graph) {
  const std::int64_t before = components(graph).count;
  std::map<Ends, Components> cuts;
  for (const Ends& edge : edges_of(graph)) {
    Components after = components(without(graph, edge));
    if (after.count > before) cuts.emplace(edge, std::move(after));
  }
  return cuts;
}

std::int64_t size_of_side(const Components& after, std::int32_t node) {
  return std::ranges::count(after.of_node, after.of_node[node]);
}

Ends ends_of(const Bridge& bridge) { return std::minmax(bridge.a, bridge.b); }

void check_all(const Graph& graph, const std::map<Ends, Components>& cuts) {
  const Bridges bridges(graph);
  const Components whole = components(graph);
  ASSERT_EQ(bridges.all().size(), cuts.size());
  std::vector<Ends> seen;
  for (const Bridge& bridge : bridges.all()) {
    const auto cut = cuts.find(ends_of(bridge));
    ASSERT_NE(cut, cuts.end()) << bridge.a << "-" << bridge.b;
    seen.push_back(cut->first);
    EXPECT_EQ(bridge.far_side, size_of_side(cut->second, bridge.b));
    const auto smallest =
        std::ranges::find(whole.of_node, whole.of_node[bridge.a]) - whole.of_node.begin();
    EXPECT_EQ(cut->second.of_node[smallest], cut->second.of_node[bridge.a]);
  }
  std::ranges::sort(seen);
  EXPECT_EQ(std::ranges::adjacent_find(seen), seen.end());
}

void check_between(const Bridges& bridges, const Components& whole,
                   const std::map<Ends, Components>& cuts, std::int64_t i, std::int64_t j) {
  const std::vector<Bridge> between = bridges.separating(i, j);
  const bool is_joined = whole.of_node[i] == whole.of_node[j];
  const auto expected = std::ranges::count_if(cuts, [&](const auto& cut) {
    return is_joined && cut.second.of_node[i] != cut.second.of_node[j];
  });
  ASSERT_EQ(std::ssize(between), expected) << i << " to " << j;
  for (std::size_t k = 0; k < between.size(); ++k) {
    const auto cut = cuts.find(ends_of(between[k]));
    ASSERT_NE(cut, cuts.end());
    const auto& side = cut->second.of_node;
    EXPECT_EQ(side[between[k].a], side[i]);
    EXPECT_EQ(side[between[k].b], side[j]);
    EXPECT_EQ(between[k].far_side, size_of_side(cut->second, between[k].b));
    // In order: what lies behind this bridge is behind all bridges before it.
    if (k > 0) {
      EXPECT_LT(between[k].far_side, between[k - 1].far_side);
    }
  }
}

void check_graph(const Graph& graph) {
  const std::map<Ends, Components> cuts = cuts_of(graph);
  check_all(graph, cuts);
  const Bridges bridges(graph);
  const Components whole = components(graph);
  for (std::int64_t i = 0; i < graph.num_nodes(); ++i) {
    for (std::int64_t j = 0; j < graph.num_nodes(); ++j) check_between(bridges, whole, cuts, i, j);
  }
}

// Undirected, sparse enough to fall apart, with self-loops and pairs that are listed again.
Graph random_graph(std::int64_t num_nodes, std::int64_t num_edges, std::uint64_t seed) {
  base::Random random(seed);
  EdgeList edges{.num_nodes = num_nodes};
  for (std::int64_t e = 0; e < num_edges; ++e) {
    edges.src.push_back(random.below(num_nodes));
    edges.dst.push_back(random.below(num_nodes));
  }
  return Graph::from_edges(edges);
}

TEST(Bridges, AreTheEdgesWhoseRemovalCutsARandomGraph) {
  std::int64_t found = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const std::int64_t num_nodes = 1 + static_cast<std::int64_t>(seed % 13);
    const Graph graph =
        random_graph(num_nodes, static_cast<std::int64_t>(seed % 7) * num_nodes / 4, seed);
    check_graph(graph);
    if (HasFatalFailure() || HasNonfatalFailure()) FAIL() << "seed " << seed;
    found += std::ssize(Bridges(graph).all());
  }
  EXPECT_GT(found, 500);  // the sample is worth something
}

TEST(Bridges, AreTheEdgesWhoseRemovalCutsAKnownShape) {
  const std::array<Graph, 3> parts = {make_path(4), make_ring(5), make_clique_chain(2, 3)};
  for (const Graph& graph : {make_path(1),
                             make_path(9),
                             make_ring(8),
                             make_grid(3, 4),
                             make_grid(1, 6),
                             make_star(7),
                             make_complete(5),
                             make_power_law_tree(20, 1),
                             make_ladder(5),
                             make_ladder(1),
                             make_caveman(3, 2),
                             make_caveman(3, 4),
                             make_caterpillar(15, 5, 1),
                             make_lobster(18, 4, 9, 1),
                             make_erdos_renyi(20, 0.1, 1),
                             make_barabasi_albert(15, 2, 1),
                             make_random_regular(10, 3, 1),
                             make_random_connected(18, 21, 1),
                             make_clique_chain(4, 3),
                             make_clique_chain(3, 2),
                             make_board(3, 3),
                             make_batch(parts)}) {
    check_graph(graph);
  }
}

TEST(Bridges, CountIsKnownForTreesAndRings) {
  EXPECT_EQ(Bridges(make_power_law_tree(500, 3)).all().size(), 499u);
  EXPECT_THAT(Bridges(make_ring(500)).all(), IsEmpty());
  EXPECT_EQ(Bridges(make_clique_chain(7, 4)).all().size(), 12u);  // two at each of 6 bridge nodes
}

TEST(Bridges, OfAPathAreInOrderFromEitherEnd) {
  const Bridges bridges(make_path(4));
  EXPECT_THAT(bridges.separating(1, 3), ElementsAre(Bridge{1, 2, 2}, Bridge{2, 3, 1}));
  EXPECT_THAT(bridges.separating(3, 1), ElementsAre(Bridge{3, 2, 3}, Bridge{2, 1, 2}));
  EXPECT_THAT(bridges.separating(2, 2), IsEmpty());
}

TEST(Bridges, OfGraphsWithFewNodes) {
  EXPECT_THAT(Bridges(Graph()).all(), IsEmpty());
  EXPECT_THAT(Bridges(make_path(1)).all(), IsEmpty());
  EXPECT_THAT(Bridges(make_path(1)).separating(0, 0), IsEmpty());
  EXPECT_THAT(Bridges(make_path(2)).all(), ElementsAre(Bridge{0, 1, 1}));
}

TEST(Bridges, SelfLoopIsNoneAndHidesNone) {
  const Graph graph = Graph::from_edges({.num_nodes = 2, .src = {0, 0, 1}, .dst = {0, 1, 1}});
  EXPECT_THAT(Bridges(graph).all(), ElementsAre(Bridge{0, 1, 1}));
}

TEST(Bridges, EdgeListedBothWaysIsOneEdge) {
  const Graph graph =
      Graph::from_edges({.num_nodes = 2, .src = {0, 1}, .dst = {1, 0}}, Direction::kDirected);
  EXPECT_THAT(Bridges(graph).all(), ElementsAre(Bridge{0, 1, 1}));
}

TEST(Bridges, NoneBetweenNodesWithoutAWay) {
  const Bridges bridges(make_caveman(2, 2));
  EXPECT_EQ(bridges.all().size(), 2u);
  EXPECT_THAT(bridges.separating(0, 3), IsEmpty());
  EXPECT_THAT(bridges.separating(3, 0), IsEmpty());
}

TEST(Bridges, OfALongPathNeedNoDeepStack) {
  constexpr std::int64_t kLength = 1'000'000;
  const Bridges bridges(make_path(kLength));
  EXPECT_EQ(std::ssize(bridges.all()), kLength - 1);
  const std::vector<Bridge> between = bridges.separating(kLength - 1, 0);
  ASSERT_EQ(std::ssize(between), kLength - 1);
  EXPECT_EQ(between.front(), (Bridge{kLength - 1, kLength - 2, kLength - 1}));
  EXPECT_EQ(between.back(), (Bridge{1, 0, 1}));
}

TEST(Bridges, OfADirectedGraphAreRefused) {
  const EdgeList edges{.num_nodes = 2, .src = {0}, .dst = {1}};
  EXPECT_THROW(Bridges(Graph::from_edges(edges, Direction::kDirected)), std::invalid_argument);
}

TEST(Bridges, NodesThatDoNotExistAreRefused) {
  const Bridges bridges(make_path(3));
  EXPECT_THROW(bridges.separating(0, 3), std::out_of_range);
  EXPECT_THROW(bridges.separating(-1, 0), std::out_of_range);
  EXPECT_THROW(bridges.separating(0, std::numeric_limits<std::int64_t>::max()), std::out_of_range);
  EXPECT_THROW(Bridges(Graph()).separating(0, 0), std::out_of_range);
}

}  // namespace
}  // namespace mpssm::graph
