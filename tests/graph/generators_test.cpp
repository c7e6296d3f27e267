// SPDX-License-Identifier: MIT
// Graph families: sizes, degrees, connectivity, seeds, and what they refuse.
#include "mpssm/graph/generators.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpssm/base/error.h"
#include "mpssm/graph/distances.h"

namespace mpssm::graph {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::StrEq;
using ::testing::ThrowsMessage;

std::vector<std::int64_t> degrees(const Graph& graph) {
  std::vector<std::int64_t> result(graph.num_nodes());
  for (std::int64_t i = 0; i < graph.num_nodes(); ++i) {
    result[i] = graph.row_ptr()[i + 1] - graph.row_ptr()[i];
  }
  return result;
}

std::vector<std::int32_t> neighbours(const Graph& graph, std::int64_t node) {
  return {graph.col().begin() + graph.row_ptr()[node],
          graph.col().begin() + graph.row_ptr()[node + 1]};
}

bool is_same(const Graph& a, const Graph& b) {
  return std::ranges::equal(a.row_ptr(), b.row_ptr()) && std::ranges::equal(a.col(), b.col());
}

void expect_simple(const Graph& graph, std::int64_t num_nodes, std::int64_t num_edges) {
  EXPECT_EQ(graph.num_nodes(), num_nodes);
  EXPECT_EQ(graph.num_edges(), num_edges);
  EXPECT_EQ(graph.num_self_loops(), 0);
  EXPECT_TRUE(graph.is_symmetric());
  EXPECT_FALSE(graph.is_weighted());
}

void expect_tree(const Graph& graph, std::int64_t num_nodes) {
  expect_simple(graph, num_nodes, num_nodes - 1);
  EXPECT_TRUE(is_connected(graph));
}

TEST(Generators, PathJoinsNeighbours) {
  expect_tree(make_path(5), 5);
  EXPECT_THAT(degrees(make_path(5)), ElementsAre(1, 2, 2, 2, 1));
  EXPECT_THAT(distances_from(make_path(5), 0), ElementsAre(0, 1, 2, 3, 4));
  expect_simple(make_path(1), 1, 0);
}

TEST(Generators, RingClosesThePath) {
  expect_simple(make_ring(6), 6, 6);
  EXPECT_THAT(degrees(make_ring(6)), Each(2));
  EXPECT_THAT(neighbours(make_ring(6), 0), ElementsAre(1, 5));
  EXPECT_TRUE(is_connected(make_ring(6)));
}

TEST(Generators, GridJoinsFourNeighbours) {
  const Graph grid = make_grid(3, 4);
  expect_simple(grid, 12, 3 * 3 + 2 * 4);
  EXPECT_THAT(neighbours(grid, 5), ElementsAre(1, 4, 6, 9));
  EXPECT_THAT(neighbours(grid, 3), ElementsAre(2, 7));
  EXPECT_TRUE(is_same(make_grid(1, 7), make_path(7)));
}

TEST(Generators, BoardJoinsEightNeighbours) {
  const Graph board = make_board(3, 4);
  expect_simple(board, 12, 3 * 3 + 2 * 4 + 2 * 2 * 3);
  EXPECT_THAT(neighbours(board, 5), ElementsAre(0, 1, 2, 4, 6, 8, 9, 10));
  EXPECT_THAT(neighbours(board, 11), ElementsAre(6, 7, 10));
}

TEST(Generators, StarJoinsAllToTheCentre) {
  expect_tree(make_star(5), 5);
  EXPECT_THAT(degrees(make_star(5)), ElementsAre(4, 1, 1, 1, 1));
}

TEST(Generators, CompleteJoinsEachPair) {
  expect_simple(make_complete(6), 6, 15);
  EXPECT_THAT(degrees(make_complete(6)), Each(5));
}

TEST(Generators, LadderIsAGridOfTwoRows) {
  EXPECT_TRUE(is_same(make_ladder(5), make_grid(2, 5)));
  EXPECT_TRUE(is_same(make_ladder(1), make_path(2)));
}

TEST(Generators, CavemanIsDisjointCliques) {
  const Graph graph = make_caveman(3, 4);
  expect_simple(graph, 12, 3 * 6);
  EXPECT_THAT(degrees(graph), Each(3));
  EXPECT_EQ(components(graph).count, 3);
}

TEST(Generators, PowerLawTreeIsATreeWithHubs) {
  for (std::uint64_t seed = 0; seed < 5; ++seed) expect_tree(make_power_law_tree(2000, seed), 2000);
  expect_simple(make_power_law_tree(1, 0), 1, 0);
  // A uniform recursive tree of this size stays below 30; preferential attachment gives hubs of
  // the order of sqrt(n).
  std::int64_t largest = 0;
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    largest = std::max(largest, std::ranges::max(degrees(make_power_law_tree(20'000, seed))));
  }
  EXPECT_GT(largest, 80);
}

TEST(Generators, CaterpillarHangsLeavesOnItsBackbone) {
  const Graph graph = make_caterpillar(40, 10, 3);
  expect_tree(graph, 40);
  for (std::int64_t i = 10; i < 40; ++i) {
    ASSERT_EQ(neighbours(graph, i).size(), 1u);
    EXPECT_LT(neighbours(graph, i)[0], 10);
  }
  EXPECT_TRUE(is_same(make_caterpillar(6, 6, 0), make_path(6)));
}

TEST(Generators, LobsterHangsFeetOnLegs) {
  const Graph graph = make_lobster(60, 10, 25, 3);
  expect_tree(graph, 60);
  for (std::int64_t i = 10; i < 25; ++i) EXPECT_LT(neighbours(graph, i)[0], 10);
  for (std::int64_t i = 25; i < 60; ++i) {
    ASSERT_EQ(neighbours(graph, i).size(), 1u);
    EXPECT_GE(neighbours(graph, i)[0], 10);
    EXPECT_LT(neighbours(graph, i)[0], 25);
  }
}

TEST(Generators, ErdosRenyiHasTheExpectedNumberOfEdges) {
  for (const double p : {0.001, 0.05, 0.5, 0.95}) {
    const Graph graph = make_erdos_renyi(1000, p, 7);
    const double pairs = 1000.0 * 999.0 / 2.0;
    // Five standard deviations.
    EXPECT_NEAR(static_cast<double>(graph.num_edges()), p * pairs,
                5.0 * std::sqrt(pairs * p * (1.0 - p)));
    EXPECT_EQ(graph.num_self_loops(), 0);
  }
  expect_simple(make_erdos_renyi(20, 0.0, 1), 20, 0);
  expect_simple(make_erdos_renyi(20, 1.0, 1), 20, 190);
  expect_simple(make_erdos_renyi(20, 1e-300, 1), 20, 0);
  expect_simple(make_erdos_renyi(1, 0.5, 1), 1, 0);
}

TEST(Generators, ErdosRenyiTreatsPairsAlike) {
  // Each of the 45 pairs in about 2000 * 0.3 graphs; five standard deviations are 103.
  std::vector<int> count(100, 0);
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const Graph graph = make_erdos_renyi(10, 0.3, seed);
    for (std::int64_t i = 0; i < 10; ++i) {
      for (const std::int32_t j : neighbours(graph, i)) ++count[10 * i + j];
    }
  }
  for (int i = 0; i < 10; ++i) {
    for (int j = 0; j < i; ++j) EXPECT_NEAR(count[10 * i + j], 600, 103) << i << ", " << j;
  }
}

TEST(Generators, BarabasiAlbertAttachesEachNewNode) {
  for (const std::int64_t m : {1, 3, 20, 99}) {
    const Graph graph = make_barabasi_albert(100, m, 5);
    expect_simple(graph, 100, m * (100 - m));
    EXPECT_TRUE(is_connected(graph));
    for (std::int64_t i = m; i < 100; ++i) {
      const auto all = neighbours(graph, i);
      EXPECT_EQ(std::ranges::count_if(all, [&](std::int32_t j) { return j < i; }), m);
    }
  }
}

TEST(Generators, RandomRegularHasOneDegree) {
  for (std::int64_t n = 1; n <= 12; ++n) {
    for (std::int64_t degree = 0; degree < n; ++degree) {
      if (n * degree % 2 == 1) continue;
      const Graph graph = make_random_regular(n, degree, 11);
      expect_simple(graph, n, n * degree / 2);
      EXPECT_THAT(degrees(graph), Each(degree));
    }
  }
  for (const std::int64_t degree : {3, 50, 149, 296}) {
    EXPECT_THAT(degrees(make_random_regular(300, degree, 2)), Each(degree));
  }
  EXPECT_TRUE(is_connected(make_random_regular(5000, 4, 1)));
}

TEST(Generators, RandomConnectedHasExactlyTheEdgesAskedFor) {
  for (std::int64_t n = 1; n <= 9; ++n) {
    for (std::int64_t m = n - 1; m <= n * (n - 1) / 2; ++m) {
      const Graph graph = make_random_connected(n, m, 3);
      expect_simple(graph, n, m);
      EXPECT_TRUE(is_connected(graph));
    }
  }
  for (const auto& [n, m] : {std::pair{22'662, 32'927}, {100'000, 500'000}, {400, 60'000}}) {
    const Graph graph = make_random_connected(n, m, 3);
    expect_simple(graph, n, m);
    EXPECT_TRUE(is_connected(graph));
  }
}

TEST(Generators, CliqueChainIsTheBottleneckOfThePaper) {
  const Graph graph = make_clique_chain(6, 10);
  expect_simple(graph, 65, 280);
  EXPECT_EQ(graph.num_nodes() + 2 * graph.num_edges(), 625);
  EXPECT_TRUE(is_connected(graph));
  for (std::int64_t bridge = 60; bridge < 65; ++bridge) {
    const auto ends = neighbours(graph, bridge);
    ASSERT_EQ(ends.size(), 2u);
    EXPECT_EQ(ends[0] / 10, bridge - 60);
    EXPECT_EQ(ends[1] / 10, bridge - 59);
  }
  // Degree 10 at most: no clique node carries two bridges.
  EXPECT_THAT(std::ranges::max(degrees(graph)), 10);
  EXPECT_EQ(distances_from(graph, 60)[64], 12);
}

TEST(Generators, DependOnTheSeedAlone) {
  const std::vector<std::function<Graph(std::uint64_t)>> families = {
      [](std::uint64_t seed) { return make_power_law_tree(50, seed); },
      [](std::uint64_t seed) { return make_caterpillar(50, 20, seed); },
      [](std::uint64_t seed) { return make_lobster(50, 10, 30, seed); },
      [](std::uint64_t seed) { return make_erdos_renyi(50, 0.3, seed); },
      [](std::uint64_t seed) { return make_barabasi_albert(50, 3, seed); },
      [](std::uint64_t seed) { return make_random_regular(50, 4, seed); },
      [](std::uint64_t seed) { return make_random_connected(50, 100, seed); },
      [](std::uint64_t seed) { return make_random_connected(50, 1000, seed); },
  };
  for (const auto& family : families) {
    EXPECT_TRUE(is_same(family(1), family(1)));
    EXPECT_FALSE(is_same(family(1), family(2)));
  }
}

TEST(Generators, RefuseSizesThatMakeNoSense) {
  const auto expect_error = [](const std::function<void()>& call, const std::string& message) {
    EXPECT_THAT(call, ThrowsMessage<base::Error>(StrEq(message)));
  };
  const std::string nodes = "expected num_nodes in [1, 2147483647], got 0";
  expect_error([] { make_path(0); }, "make_path: " + nodes);
  expect_error([] { make_star(0); }, "make_star: " + nodes);
  expect_error([] { make_complete(0); }, "make_complete: " + nodes);
  expect_error([] { make_power_law_tree(0, 1); }, "make_power_law_tree: " + nodes);
  expect_error([] { make_ring(2); }, "make_ring: expected num_nodes in [3, 2147483647], got 2");
  expect_error([] { make_grid(0, 3); }, "make_grid: expected rows in [1, 2147483647], got 0");
  expect_error([] { make_grid(3, 0); }, "make_grid: expected columns in [1, 715827882], got 0");
  expect_error([] { make_board(1 << 20, 1 << 20); },
               "make_board: expected columns in [1, 2047], got 1048576");
  expect_error([] { make_ladder(-1); }, "make_ladder: expected rungs in [1, 1073741823], got -1");
  expect_error([] { make_caveman(2, 0); },
               "make_caveman: expected clique_size in [1, 1073741823], got 0");
  expect_error([] { make_caterpillar(5, 6, 1); },
               "make_caterpillar: expected backbone in [1, 5], got 6");
  expect_error([] { make_lobster(5, 3, 3, 1); },
               "make_lobster: expected feet_start in [4, 5], got 3");
  expect_error([] { make_erdos_renyi(5, 1.5, 1); },
               "make_erdos_renyi: expected probability in [0, 1], got 1.500000");
  expect_error([] { make_erdos_renyi(5, std::nan(""), 1); },
               "make_erdos_renyi: expected probability in [0, 1], got nan");
  expect_error([] { make_barabasi_albert(5, 5, 1); },
               "make_barabasi_albert: expected attachments in [1, 4], got 5");
  expect_error([] { make_random_regular(5, 5, 1); },
               "make_random_regular: expected degree in [0, 4], got 5");
  expect_error([] { make_random_regular(5, 3, 1); },
               "make_random_regular: expected num_nodes * degree even, got 5 * 3");
  expect_error([] { make_random_connected(5, 3, 1); },
               "make_random_connected: expected num_edges in [4, 10], got 3");
  expect_error([] { make_random_connected(5, 11, 1); },
               "make_random_connected: expected num_edges in [4, 10], got 11");
  expect_error([] { make_clique_chain(3, 1); },
               "make_clique_chain: expected clique_size in [2, 715827881], got 1");
}

}  // namespace
}  // namespace mpssm::graph
