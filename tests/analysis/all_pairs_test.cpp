// SPDX-License-Identifier: MIT
// Blocks of columns against dense powers.
#include "mpssm/analysis/all_pairs.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include <torch/torch.h>

#include "mpssm/graph/generators.h"
#include "mpssm/ops/runtime.h"

#include "tests/support/operators.h"
#include "tests/support/tensors.h"

namespace mpssm::analysis {
namespace {

using graph::Graph;
using mpssm::testing::awkward_operators;
using mpssm::testing::to_dense;

TEST(AllPairs, DensePowerIsThePower) {
  auto operators = awkward_operators();
  operators.push_back({"larger than a block", graph::make_gso(graph::make_grid(5, 9))});
  for (const auto& [name, gso] : operators) {
    const std::int64_t n = gso.num_nodes();
    for (const std::int64_t tau : {0, 1, 6}) {
      const auto power = dense_power(gso, tau, ops::Threads());
      ASSERT_EQ(std::ssize(power), n * n) << name;
      if (n == 0) continue;
      const auto actual = torch::tensor(power, torch::kDouble).reshape({n, n});
      EXPECT_LE((actual - torch::matrix_power(to_dense(gso), tau)).abs().max().item<double>(),
                1e-12)
          << name;
    }
  }
}

TEST(AllPairs, ExtremesAreThoseOfTheDensePower) {
  const std::vector<Graph> graphs = {graph::make_grid(5, 9), graph::make_path(3),
                                     graph::make_random_connected(40, 70, 3)};
  const std::int64_t taus[] = {0, 1, 3, 30};
  for (const Graph& graph : graphs) {
    const auto gso = graph::make_gso(graph);
    const std::int64_t n = gso.num_nodes();
    const auto found = extremes(gso, taus, ops::Threads());
    ASSERT_EQ(found.size(), 4U);
    for (const Extremes& at : found) {
      const auto power = dense_power(gso, at.tau, ops::Threads());
      EXPECT_EQ(at.least.value, *std::min_element(power.begin(), power.end()));
      EXPECT_EQ(at.largest.value, *std::max_element(power.begin(), power.end()));
      EXPECT_EQ(power[at.least.target * n + at.least.source], at.least.value);
      EXPECT_EQ(power[at.largest.target * n + at.largest.source], at.largest.value);
      EXPECT_EQ(at.zeros, std::count(power.begin(), power.end(), 0.0));
    }
  }
}

TEST(AllPairs, PairsOfTwoComponentsDoNotCountAsWorst) {
  const auto gso = graph::make_gso(graph::make_caveman(3, 4));
  const std::int64_t taus[] = {2};
  EXPECT_NEAR(extremes(gso, taus, ops::Threads())[0].least.value, 0.25, 1e-12);
  EXPECT_EQ(extremes(gso, taus, ops::Threads())[0].zeros, 0);
  EXPECT_EQ(worst_pairs(gso, 2, 100, Order::kValue, nullptr, ops::Threads()).size(), 3U * 6U);
}

TEST(AllPairs, WorstPairsAreTheLeastOfAllPairs) {
  const auto graph = graph::make_random_connected(40, 60, 8);
  const auto gso = graph::make_gso(graph);
  const DeepLimit limit(graph);
  const std::int64_t n = gso.num_nodes();
  const auto power = dense_power(gso, 7, ops::Threads());
  for (const Order order : {Order::kValue, Order::kShare}) {
    std::vector<std::tuple<double, std::int64_t, std::int64_t>> expected;
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t i = j + 1; i < n; ++i) {
        const double value = power[i * n + j];
        expected.emplace_back(order == Order::kShare ? value / limit.limit(i, j) : value, j, i);
      }
    }
    std::sort(expected.begin(), expected.end());
    const auto worst = worst_pairs(gso, 7, 25, order, &limit, ops::Threads());
    ASSERT_EQ(worst.size(), 25U);
    for (std::size_t k = 0; k < worst.size(); ++k) {
      EXPECT_EQ(worst[k].source, std::get<1>(expected[k])) << k;
      EXPECT_EQ(worst[k].target, std::get<2>(expected[k])) << k;
      EXPECT_EQ(worst[k].value, power[worst[k].target * n + worst[k].source]);
    }
  }
  EXPECT_TRUE(worst_pairs(gso, 7, 0, Order::kValue, nullptr, ops::Threads()).empty());
  EXPECT_EQ(worst_pairs(gso, 7, 100'000, Order::kValue, nullptr, ops::Threads()).size(),
            static_cast<std::size_t>(n * (n - 1) / 2));
  EXPECT_THROW(worst_pairs(gso, 7, 5, Order::kShare, nullptr, ops::Threads()),
               std::invalid_argument);
}

TEST(AllPairs, DirectedPairsCountBothWays) {
  const auto gso = graph::make_gso(Graph::from_edges({.num_nodes = 3, .src = {0, 1}, .dst = {1, 2}},
                                                     graph::Direction::kDirected),
                                   {.kind = graph::GsoKind::kRandomWalk});
  const auto worst = worst_pairs(gso, 4, 10, Order::kValue, nullptr, ops::Threads());
  ASSERT_EQ(worst.size(), 6U);
  EXPECT_EQ(worst[0].value, 0.0);  // against the edges
  EXPECT_EQ(worst[2].value, 0.0);
  EXPECT_GT(worst[3].value, 0.0);
}

// What depth_of_all_pairs relies on.
TEST(AllPairs, LeastShareOverTargetsNeverFalls) {
  for (const Graph& graph : {graph::make_ring(6), graph::make_star(9), graph::make_path(5),
                             graph::make_random_connected(20, 30, 4)}) {
    const auto gso = graph::make_gso(graph);
    const DeepLimit limit(graph);
    const std::int64_t n = gso.num_nodes();
    std::vector<double> before(static_cast<std::size_t>(n), 0.0);
    for (std::int64_t tau = 0; tau < 60; ++tau) {
      const auto power = dense_power(gso, tau, ops::Threads());
      for (std::int64_t j = 0; j < n; ++j) {
        double least = 1e300;
        for (std::int64_t i = 0; i < n; ++i) {
          least = std::min(least, power[i * n + j] / limit.limit(i, j));
        }
        EXPECT_GE(least, before[j] - 1e-12);
        before[j] = least;
      }
    }
  }
}

TEST(AllPairs, DepthIsTheFirstAtWhichAllPairsHaveTheirShare) {
  for (const Graph& graph : {graph::make_grid(4, 7), graph::make_clique_chain(3, 4),
                             graph::make_caveman(2, 5), graph::make_star(9)}) {
    const auto gso = graph::make_gso(graph);
    const DeepLimit limit(graph);
    const std::int64_t n = gso.num_nodes();
    for (const double share : {0.1, 0.5, 0.9}) {
      const auto least_share = [&](std::int64_t tau) {
        const auto power = dense_power(gso, tau, ops::Threads());
        double least = 1e300;
        for (std::int64_t i = 0; i < n; ++i) {
          for (std::int64_t j = 0; j < n; ++j) {
            if (limit.limit(i, j) > 0.0) {
              least = std::min(least, power[i * n + j] / limit.limit(i, j));
            }
          }
        }
        return least;
      };
      const auto depth = depth_of_all_pairs(gso, limit, share, 10'000, ops::Threads());
      ASSERT_TRUE(depth.has_value());
      EXPECT_GE(least_share(depth->tau), share * (1 - 1e-12));
      EXPECT_LT(least_share(depth->tau - 1), share);
      EXPECT_FALSE(
          depth_of_all_pairs(gso, limit, share, depth->tau - 1, ops::Threads()).has_value());
    }
  }
}

TEST(AllPairs, OneNodeNeedsNoDepth) {
  const auto graph = Graph::from_edges({.num_nodes = 1});
  const auto gso = graph::make_gso(graph);
  EXPECT_EQ(depth_of_all_pairs(gso, DeepLimit(graph), 0.5, 10, ops::Threads())->tau, 0);
  EXPECT_TRUE(worst_pairs(gso, 3, 10, Order::kValue, nullptr, ops::Threads()).empty());
}

TEST(AllPairs, ProgressEndsAtOneAndGraphsTooLargeAreRefused) {
  const auto gso = graph::make_gso(graph::make_grid(5, 9));
  const std::int64_t taus[] = {1};
  double last = 0.0;
  int calls = 0;
  extremes(gso, taus, ops::Threads(), [&](double share) {
    EXPECT_GT(share, last);
    last = share;
    ++calls;
  });
  EXPECT_EQ(last, 1.0);
  EXPECT_EQ(calls, 3);  // 45 columns in blocks of 16
  const auto large = graph::make_gso(graph::make_path(kMaxAllPairs + 1));
  EXPECT_THROW(extremes(large, taus, ops::Threads()), std::invalid_argument);
  const std::int64_t descending[] = {2, 1};
  EXPECT_THROW(extremes(gso, descending, ops::Threads()), std::invalid_argument);
}

}  // namespace
}  // namespace mpssm::analysis
