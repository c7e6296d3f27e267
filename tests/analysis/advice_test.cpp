// SPDX-License-Identifier: MIT
// Depth and change against dense powers.
#include "mpssm/analysis/advice.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "mpssm/analysis/deep_limit.h"
#include "mpssm/graph/generators.h"

namespace mpssm::analysis {
namespace {

using graph::Graph;

const engine::SerialExecutor kOneThread;

/// The least tau from which on that share of the pairs always has its share, by looking at all.
std::int64_t depth_by_looking(const Graph& graph, double share, double of_pairs,
                              std::int64_t max_tau) {
  const auto gso = graph::make_gso(graph);
  const DeepLimit limit(graph);
  const std::int64_t n = graph.num_nodes();
  std::int64_t from = max_tau + 1;
  for (std::int64_t tau = max_tau; tau >= 0; --tau) {
    const auto power = dense_power(gso, tau, kOneThread);
    std::int64_t pairs = 0, reached = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        if (limit.limit(i, j) == 0.0) continue;
        ++pairs;
        reached += power[i * n + j] >= share * limit.limit(i, j) ? 1 : 0;
      }
    }
    if (static_cast<double>(reached) < of_pairs * static_cast<double>(pairs)) break;
    from = tau;
  }
  return from;
}

TEST(Advice, DepthIsThatOfAllPairsLookedAt) {
  const Graph two[] = {graph::make_path(5), graph::make_ring(6)};
  for (const Graph& graph : {graph::make_clique_chain(3, 4), graph::make_grid(4, 6),
                             graph::make_random_connected(30, 45, 2), graph::make_batch(two)}) {
    const DepthAdvice advice = advise_depth(graph, 0.4, 300, kOneThread);
    ASSERT_EQ(advice.steps.size(), 4u);
    for (const DepthStep& step : advice.steps) {
      ASSERT_TRUE(step.hops.has_value());
      EXPECT_EQ(*step.hops, depth_by_looking(graph, 0.4, step.of_pairs, 300)) << step.of_pairs;
    }
    const auto all =
        depth_of_all_pairs(graph::make_gso(graph), DeepLimit(graph), 0.4, 300, kOneThread);
    EXPECT_EQ(advice.steps.back().hops, all->tau);
    EXPECT_GT(advice.seconds_per_hop, 0.0);
  }
}

TEST(Advice, DepthThatIsTooDeepIsNotClaimed) {
  const DepthAdvice advice = advise_depth(graph::make_path(40), 0.5, 20, kOneThread);
  EXPECT_FALSE(advice.steps.back().hops.has_value());
}

TEST(Advice, WhatIfComparesTwoDensePowers) {
  const Graph graph = graph::make_clique_chain(3, 4);
  const GraphEdit edit{.remove = {{0, 1}}, .add = {{0, 9}}};
  constexpr std::int64_t kTau = 7;
  const WhatIfAnswer answer =
      what_if(graph, graph::GsoKind::kSymNormalized, edit, kTau, 2, 9, kOneThread);
  const std::int64_t n = graph.num_nodes();
  const auto before = dense_power(graph::make_gso(graph), kTau, kOneThread);
  const auto after = dense_power(graph::make_gso(edited(graph, edit)), kTau, kOneThread);
  EXPECT_NEAR(answer.pair_before, before[9 * n + 2], 1e-13);
  EXPECT_NEAR(answer.pair_after, after[9 * n + 2], 1e-13);
  ASSERT_FALSE(answer.hearers.empty());
  for (const auto& hearer : answer.hearers) {
    EXPECT_NEAR(hearer.before, before[hearer.node * n + 2], 1e-13);
    EXPECT_NEAR(hearer.after, after[hearer.node * n + 2], 1e-13);
  }
  EXPECT_NEAR(answer.least_before->value, *std::min_element(before.begin(), before.end()), 1e-15);
  EXPECT_NEAR(answer.least_after->value, *std::min_element(after.begin(), after.end()), 1e-15);
}

TEST(Advice, WhatIfFarFromTheChangeNothingChanges) {
  const Graph graph = graph::make_path(60);
  const WhatIfAnswer answer =
      what_if(graph, graph::GsoKind::kSymNormalized, {.remove = {{50, 51}}}, 4, 3, 5, kOneThread);
  EXPECT_EQ(answer.pair_before, answer.pair_after);
  EXPECT_GT(answer.pair_before, 0.0);
  EXPECT_TRUE(answer.hearers.empty());
  EXPECT_EQ(answer.components_before, 1);
  EXPECT_EQ(answer.components_after, 2);
}

}  // namespace
}  // namespace mpssm::analysis
