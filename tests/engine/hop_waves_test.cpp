// SPDX-License-Identifier: MIT
#include "mpssm/engine/hop_waves.h"

#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "mpssm/graph/order.h"
#include "mpssm/graph/row_reach.h"

namespace mpssm::engine {
namespace {

/// Edges one way between nodes at most `apart` from each other, loops at some nodes.
graph::Gso near_diagonal(std::int64_t nodes, std::int64_t apart) {
  std::mt19937_64 random(3);
  graph::EdgeList edges;
  edges.num_nodes = nodes;
  for (std::int64_t i = 0; i < 4 * nodes; ++i) {
    const auto src = static_cast<std::int64_t>(random() % nodes);
    const auto step = static_cast<std::int64_t>(random() % (2 * apart + 1)) - apart;
    edges.src.push_back(src);
    edges.dst.push_back(std::clamp<std::int64_t>(src + step, 0, nodes - 1));
  }
  return graph::make_gso(graph::Graph::from_edges(edges, graph::Direction::kDirected),
                         {.kind = graph::GsoKind::kAdjacency});
}

/// Runs `hops` over two buffers that hold for each row which hop wrote it. Every row must find all
/// that it reads as the hop before left it, and be written once a hop.
void expect_every_row_in_time(const HopWaves& waves, const kernels::CsrView<double>& a,
                              std::int64_t hops) {
  const std::int64_t n = a.num_rows;
  std::vector<std::int64_t> states[2] = {std::vector<std::int64_t>(n, -1),
                                         std::vector<std::int64_t>(n, -2)};
  std::int64_t too_early = 0;
  std::int64_t rows = 0;
  waves(hops, [&](std::int64_t hop, std::int64_t first, std::int64_t count) {
    const std::vector<std::int64_t>& from = states[(hop + 1) % 2 == 0 ? 1 : 0];
    std::vector<std::int64_t>& to = states[(hop + 1) % 2 == 0 ? 0 : 1];
    for (std::int64_t row = first; row < first + count; ++row) {
      for (std::int64_t e = a.row_ptr[row]; e < a.row_ptr[row + 1]; ++e) {
        too_early += from[a.col[e]] != hop - 1 ? 1 : 0;
      }
      too_early += to[row] != hop - 2 ? 1 : 0;
      to[row] = hop;
      ++rows;
    }
  });
  EXPECT_EQ(too_early, 0);
  EXPECT_EQ(rows, hops * n);
}

TEST(HopWaves, FindWhatTheyReadAsTheHopBeforeLeftIt) {
  constexpr std::int64_t kNodes = 9000;
  for (const std::int64_t apart : {3, 400, 8999}) {
    const graph::Gso gso = near_diagonal(kNodes, apart);
    const HopWaves waves(kNodes, graph::row_reach<double>(gso, false), /*row_bytes=*/64);
    ASSERT_EQ(waves.at_once(), HopWaves::kMost);
    for (const std::int64_t hops : {1, 2, 7, 8, 9, 21}) {
      expect_every_row_in_time(waves, gso.view<double>(), hops);
      expect_every_row_in_time(waves, gso.transpose_view<double>(), hops);
    }
  }
}

TEST(HopWaves, GoInTheOrderOfTheNodesThatAnOperatorIsGiven) {
  constexpr std::int64_t kNodes = 5000;
  const graph::Gso gso = near_diagonal(kNodes, 30);
  const auto& ordered = graph::ordered_gso<double>(gso);
  const HopWaves waves(kNodes, graph::row_reach<double>(gso, true), 64);
  expect_every_row_in_time(waves, ordered.view(), 9);
  expect_every_row_in_time(waves, ordered.transpose_view(), 9);
}

TEST(HopWaves, AreAsManyAsTheCacheHolds) {
  constexpr std::int64_t kNodes = 100'000;
  const auto at_once = [](std::int64_t apart, std::int64_t row_bytes) {
    const graph::Gso gso = near_diagonal(kNodes, apart);
    return HopWaves(kNodes, graph::row_reach<double>(gso, false), row_bytes).at_once();
  };
  EXPECT_EQ(at_once(100, 512), HopWaves::kMost);
  EXPECT_EQ(at_once(kNodes, 512), 1);
  const std::int64_t some = at_once(1500, 512);
  EXPECT_GT(some, 1);
  EXPECT_LT(some, HopWaves::kMost);
  EXPECT_LT(at_once(1500, 1024), some);
}

// Rows that follow each other at once: the second hop begins long before the first one ends.
TEST(HopWaves, DoNotWaitForTheEndOfAHop) {
  constexpr std::int64_t kNodes = 20'000;
  const graph::Gso gso = near_diagonal(kNodes, 10);
  const HopWaves waves(kNodes, graph::row_reach<double>(gso, false), 64);
  std::int64_t first_done = 0;
  std::int64_t furthest_behind = 0;
  waves(2, [&](std::int64_t hop, std::int64_t first, std::int64_t count) {
    if (hop == 0) first_done = first + count;
    if (hop == 1) furthest_behind = std::max(furthest_behind, first_done - first);
  });
  EXPECT_LE(furthest_behind, 3 * graph::kReachRows);
}

}  // namespace
}  // namespace mpssm::engine
