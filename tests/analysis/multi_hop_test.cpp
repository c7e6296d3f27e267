// SPDX-License-Identifier: MIT
#include "mpssm/analysis/multi_hop.h"

#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include <torch/torch.h>

#include "mpssm/graph/distances.h"
#include "mpssm/graph/generators.h"
#include "mpssm/ops/recurrence.h"

#include "tests/support/tensors.h"

namespace mpssm::analysis {
namespace {

using torch::Tensor;

class MultiHop : public ::testing::TestWithParam<bool> {};

TEST_P(MultiHop, IsTheJacobianOfTheRecurrenceByDistance) {
  torch::manual_seed(1);
  const graph::Graph graph = graph::make_random_connected(10, 12, 4);
  const graph::Gso gso = graph::make_gso(graph);
  constexpr std::int64_t kHops = 3;
  const Tensor b = torch::randn({4, 6}, torch::kDouble);
  const Tensor w = GetParam() ? mpssm::testing::random_sigma(3, torch::kDouble)
                              : mpssm::testing::random_dense_w(6, torch::kDouble);
  const std::vector<std::int64_t> targets = {2, 7};
  const BlockHops view = block_hops(gso, b, w, kHops, targets);

  // Norms of B W^i with W as a matrix.
  const Tensor matrix = mpssm::testing::real_state_matrix(w);
  const Tensor a = mpssm::testing::to_dense(gso);
  Tensor power = torch::eye(6, torch::kDouble);
  Tensor walks = torch::eye(10, torch::kDouble);
  for (std::int64_t i = 0; i <= kHops; ++i) {
    const double norm = b.mm(power).norm().item<double>();
    EXPECT_NEAR(view.weight_norm[i], norm, 1e-10);
    const double mean = (walks[2].abs().sum() + walks[7].abs().sum()).item<double>() / 2.0;
    EXPECT_NEAR(view.by_walk[i], norm * mean, 1e-10);
    power = power.mm(matrix);
    walks = walks.mm(a);
  }

  // By automatic differentiation, node by node.
  std::vector<double> expected(kHops + 1);
  std::vector<double> nodes(kHops + 1);
  for (const std::int64_t target : targets) {
    const Tensor u = torch::zeros({10, 4}, torch::kDouble).requires_grad_();
    const Tensor x = ops::recurrence_static(gso, torch::matmul(u, b), {w}, kHops + 1,
                                            {.plan = engine::Plan::kReference})
                         .output;
    std::vector<double> squares(10);
    for (std::int64_t c = 0; c < 6; ++c) {
      const Tensor row = torch::autograd::grad({x[target][c]}, {u}, {}, true)[0];
      for (std::int64_t j = 0; j < 10; ++j) squares[j] += row[j].square().sum().item<double>();
    }
    for (std::int64_t j = 0; j < 10; ++j) {
      const std::int32_t d = graph::distances_from(graph, j)[target];
      if (d > kHops) continue;
      expected[d] += std::sqrt(squares[j]) / 2.0;
      nodes[d] += 0.5;
    }
  }
  ASSERT_EQ(view.by_distance.size(), expected.size());
  for (std::size_t d = 0; d < expected.size(); ++d) {
    EXPECT_NEAR(view.by_distance[d], expected[d], 1e-9) << d;
    EXPECT_DOUBLE_EQ(view.nodes_at[d], nodes[d]);
  }
}

INSTANTIATE_TEST_SUITE_P(DenseAndDiagonal, MultiHop, ::testing::Bool());

}  // namespace
}  // namespace mpssm::analysis
