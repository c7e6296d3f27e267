// SPDX-License-Identifier: MIT
// Profiles of one node against dense powers of the operator.
#include "mpssm/analysis/walk.h"

#include <span>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include <torch/torch.h>

#include "mpssm/analysis/all_pairs.h"
#include "mpssm/graph/distances.h"
#include "mpssm/graph/generators.h"
#include "mpssm/ops/runtime.h"

#include "tests/support/operators.h"
#include "tests/support/tensors.h"

namespace mpssm::analysis {
namespace {

using mpssm::testing::awkward_operators;
using mpssm::testing::to_dense;

TEST(Walk, ColumnsAndRowsAreThoseOfThePowers) {
  for (const auto& [name, gso] : awkward_operators()) {
    const auto a = to_dense(gso);
    for (std::int64_t node = 0; node < gso.num_nodes(); node += 2) {
      const ops::Threads threads;
      Walk from(gso, node, View::kFromSource, threads);
      Walk to(gso, node, View::kToTarget, threads);
      for (std::int64_t tau = 0; tau <= 9; ++tau) {
        const auto power = torch::matrix_power(a, tau);
        for (std::int64_t i = 0; i < gso.num_nodes(); ++i) {
          EXPECT_NEAR(from.values()[i], power[i][node].item<double>(), 1e-12) << name;
          EXPECT_NEAR(to.values()[i], power[node][i].item<double>(), 1e-12) << name;
        }
        from.step();
        to.step();
      }
    }
  }
}

TEST(Walk, PairProfileOfLowRankIsThatOfThePowers) {
  torch::manual_seed(1);
  const std::vector<std::int64_t> graph_ptr = {0, 4, 9};
  const torch::Tensor p = 0.6 * torch::randn({9, 3}, torch::kDouble);
  const torch::Tensor q = 0.6 * torch::randn({9, 3}, torch::kDouble);
  const auto numbers = [](const torch::Tensor& t) {
    return std::span<const double>(t.data_ptr<double>(), static_cast<std::size_t>(t.numel()));
  };
  const graph::LowRankOperator a(graph::GsoKind::kCustom, 3, numbers(p), numbers(q), graph_ptr);
  torch::Tensor dense = torch::zeros({9, 9}, torch::kDouble);
  for (std::size_t g = 0; g < 2; ++g) {
    const torch::indexing::Slice part(graph_ptr[g], graph_ptr[g + 1]);
    dense.index_put_({part, part}, p.index({part}).matmul(q.index({part}).t()));
  }
  const std::int64_t taus[] = {3, 0, 1, 8, 3};
  for (const std::int64_t target : {1, 2, 7}) {
    const std::vector<double> profile = pair_profile(a, 1, target, taus);
    for (std::size_t t = 0; t < profile.size(); ++t) {
      EXPECT_NEAR(profile[t], torch::matrix_power(dense, taus[t])[target][1].item<double>(), 1e-12);
    }
  }
}

TEST(Walk, PairProfileAnswersTausInAnyOrder) {
  const auto gso = graph::make_gso(graph::make_ring(7));
  const std::int64_t taus[] = {5, 0, 12, 5, 1};
  const auto profile = pair_profile(gso, 2, 4, taus, ops::Threads());
  const auto a = to_dense(gso);
  for (std::size_t i = 0; i < profile.size(); ++i) {
    EXPECT_NEAR(profile[i], torch::matrix_power(a, taus[i])[4][2].item<double>(), 1e-14);
  }
  EXPECT_EQ(profile[0], profile[3]);
  EXPECT_EQ(profile[1], 0.0);  // tau = 0: nothing but itself
  EXPECT_EQ(profile[4], 0.0);  // two hops away
}

TEST(Walk, DirectionOfAnEdgeMatters) {
  const auto graph = graph::Graph::from_edges({.num_nodes = 3, .src = {0, 1}, .dst = {1, 2}},
                                              graph::Direction::kDirected);
  const auto gso = graph::make_gso(graph, {.kind = graph::GsoKind::kRandomWalk});
  const std::int64_t taus[] = {2};
  EXPECT_GT(pair_profile(gso, 0, 2, taus, ops::Threads())[0], 0.0);
  EXPECT_EQ(pair_profile(gso, 2, 0, taus, ops::Threads())[0], 0.0);
  EXPECT_EQ(hops_to(gso, 2), (std::vector<std::int32_t>{2, 1, 0}));
  EXPECT_EQ(hops_to(gso, 0),
            (std::vector<std::int32_t>{0, graph::kUnreachable, graph::kUnreachable}));
}

TEST(Walk, ReachCountsAndSumsWhatArrives) {
  for (const auto& [name, gso] : awkward_operators()) {
    if (gso.num_nodes() == 0) continue;
    const std::int64_t taus[] = {0, 1, 4};
    const auto profile = reach_profile(gso, 0, View::kFromSource, taus, ops::Threads());
    for (const Reach& reach : profile) {
      const auto column = torch::matrix_power(to_dense(gso), reach.tau).select(1, 0).abs();
      const auto arrived = column.masked_select(column > 0);
      EXPECT_EQ(reach.nodes, arrived.numel()) << name;
      EXPECT_NEAR(reach.total, arrived.sum().item<double>(), 1e-12) << name;
      EXPECT_NEAR(reach.largest, column.max().item<double>(), 1e-12) << name;
      if (arrived.numel() > 0) {
        EXPECT_NEAR(reach.smallest, arrived.min().item<double>(), 1e-12) << name;
      }
    }
    EXPECT_EQ(profile[0].nodes, 1);
  }
}

TEST(Walk, OneNodeKeepsItself) {
  const auto gso = graph::make_gso(graph::Graph::from_edges({.num_nodes = 1}));
  const std::int64_t taus[] = {0, 1, 1000};
  EXPECT_EQ(pair_profile(gso, 0, 0, taus, ops::Threads()), (std::vector<double>{1.0, 1.0, 1.0}));
}

TEST(Walk, FirstReachingIsTheFirst) {
  const auto gso = graph::make_gso(graph::make_clique_chain(3, 4));
  const auto a = to_dense(gso);
  const std::int64_t last = gso.num_nodes() - 1;
  for (const double threshold : {1e-9, 1e-3, 0.01}) {
    const auto found = first_reaching(gso, 0, last, threshold, 10'000, ops::Threads());
    ASSERT_TRUE(found.has_value());
    EXPECT_GE(torch::matrix_power(a, *found)[last][0].item<double>(), threshold * (1 - 1e-12));
    EXPECT_LT(torch::matrix_power(a, *found - 1)[last][0].item<double>(), threshold);
  }
  EXPECT_EQ(first_reaching(gso, 0, 0, 0.5, 10, ops::Threads()), 0);
  EXPECT_FALSE(first_reaching(gso, 0, last, 0.9, 500, ops::Threads()).has_value());
}

TEST(Walk, HopsAreThoseOfTheGraph) {
  const auto graph = graph::make_random_connected(30, 40, 5);
  const auto gso = graph::make_gso(graph);
  for (std::int64_t node = 0; node < 30; ++node) {
    EXPECT_EQ(hops_to(gso, node), graph::distances_from(graph, node));
  }
}

TEST(Walk, UnknownNodesAndNegativeTausAreRefused) {
  const auto gso = graph::make_gso(graph::make_path(3));
  const std::int64_t taus[] = {1};
  const std::int64_t negative[] = {-1};
  EXPECT_THROW(Walk(gso, 3, View::kFromSource, ops::Threads()), std::out_of_range);
  EXPECT_THROW(Walk(gso, -1, View::kToTarget, ops::Threads()), std::out_of_range);
  EXPECT_THROW(pair_profile(gso, 0, 3, taus, ops::Threads()), std::out_of_range);
  EXPECT_THROW(pair_profile(gso, 0, 1, negative, ops::Threads()), std::invalid_argument);
  EXPECT_THROW(hops_to(gso, 7), std::out_of_range);
  EXPECT_THROW(Walk(graph::Gso(), 0, View::kFromSource, ops::Threads()), std::out_of_range);
}

// T7b: the paper's bottleneck, a chain of 6 cliques of 10 nodes.
TEST(Walk, CliqueChainHasTheKnownProfile) {
  const auto graph = graph::make_clique_chain(6, 10);
  ASSERT_EQ(graph.num_nodes(), 65);
  ASSERT_EQ(graph.num_edges(), 280);
  const auto gso = graph::make_gso(graph);
  EXPECT_EQ(hops_to(gso, 64)[60], 12);
  const std::int64_t taus[] = {1, 5, 10, 11, 12, 100, 1000, 5000, 20'000};
  const auto profile = pair_profile(gso, 60, 64, taus, ops::Threads());
  for (int i = 0; i < 4; ++i) EXPECT_EQ(profile[i], 0.0);
  EXPECT_NEAR(profile[4], 5.759350e-11, 1e-4 * 5.759350e-11);
  EXPECT_NEAR(profile[5], 3.9585e-5, 1e-4 * 3.9585e-5);
  EXPECT_NEAR(profile[6], 2.7301e-3, 1e-4 * 2.7301e-3);
  EXPECT_NEAR(profile[7], 4.7815e-3, 1e-4 * 4.7815e-3);
  EXPECT_NEAR(profile[8], 0.0048, 1e-9);
}

}  // namespace
}  // namespace mpssm::analysis
