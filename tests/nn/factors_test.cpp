// SPDX-License-Identifier: MIT
#include "mpssm/nn/factors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <torch/torch.h>

#include "mpssm/graph/generators.h"
#include "mpssm/graph/operator_groups.h"
#include "mpssm/nn/model.h"

#include "tests/support/tensors.h"

namespace mpssm::nn {
namespace {

using mpssm::testing::close;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr std::int64_t kRing = 9;  // nodes

graph::Operators beside_adaptive(std::int64_t rank, std::int64_t nodes = kRing) {
  graph::GsoGroups groups = graph::gso_groups_from_text("sym_normalized,adaptive");
  groups.adaptive_rank = rank;
  return graph::make_operators(graph::make_ring(nodes), groups);
}

BlockOptions adaptive_block(StateKind state, std::int64_t rank) {
  return {.in_channels = 3,
          .state_channels = 8,
          .out_channels = 2,
          .hops = 5,
          .group_shares = {1, 1},
          .state = {.kind = state},
          .factors = {.num_nodes = kRing, .rank = rank}};
}

double largest_singular_value(const torch::Tensor& matrix) {
  return std::get<1>(torch::linalg_svd(matrix)).max().item<double>();
}

TEST(LearnedFactors, HaveNoSingularValueAboveOne) {
  torch::manual_seed(3);
  const torch::NoGradGuard no_grad;
  Factors factors(FactorsOptions{.num_nodes = kRing, .rank = 4});
  factors->to(torch::kDouble);
  for (int round = 0; round < 20; ++round) {
    factors->hearing.normal_(0.0, 3.0);
    // Almost the same column four times: scaled one by one to length 1 they would reach 2.
    factors->heard.copy_(torch::randn({kRing, 1}, torch::kDouble) +
                         0.01 * torch::randn({kRing, 4}, torch::kDouble));
    const torch::Tensor both = factors->forward();
    EXPECT_LE(largest_singular_value(both[0]), 1.0 + 1e-12);
    EXPECT_LE(largest_singular_value(both[1]), 1.0 + 1e-12);
    EXPECT_GT(largest_singular_value(both[1]), 0.99);
  }
  // Orthogonal columns come out with length 1.
  factors->hearing.copy_(5.0 * torch::eye(kRing, torch::kDouble).narrow(1, 0, 4));
  EXPECT_TRUE(
      close(factors->forward()[0], torch::eye(kRing, torch::kDouble).narrow(1, 0, 4), 1e-14));
}

TEST(LearnedFactors, OfABlockAreItsOperator) {
  for (const StateKind state : {StateKind::kDense, StateKind::kStable}) {
    torch::manual_seed(4);
    Block block(adaptive_block(state, 3));
    block->to(torch::kDouble);
    const graph::Operators gso = beside_adaptive(3);
    const torch::Tensor u = torch::randn({kRing, 3}, torch::kDouble);
    const graph::Operators own = block->operator_for({}, gso);
    const torch::Tensor factors = block->factors->forward();
    // The same by the definition, hop by hop with P Q' written out.
    const torch::Tensor a = factors[0].matmul(factors[1].t());
    const torch::Tensor c = u.matmul(block->w_in).narrow(1, 4, 4);
    const torch::Tensor w = block->w_state->of_groups()[1];
    torch::Tensor x = c;
    for (int hop = 0; hop < 5; ++hop) {
      const torch::Tensor moved = a.matmul(x);
      x = c + (w.is_complex()
                   ? torch::view_as_real(torch::view_as_complex(moved.view({kRing, 2, 2})) * w)
                         .flatten(1)
                   : moved.matmul(w));
    }
    EXPECT_TRUE(close(block->recur(u, gso).narrow(1, 4, 4), x, 1e-12));
    EXPECT_TRUE(close(
        torch::tensor(std::vector<double>(own.low_rank(1).p().begin(), own.low_rank(1).p().end()),
                      torch::kDouble)
            .view({kRing, 3}),
        factors[0], 1e-14));
    // Autograd reaches the vectors, and a step downhill goes downhill.
    const auto loss_of = [&] { return (block->recur(u, gso) - 1.0).square().sum(); };
    const torch::Tensor before = loss_of();
    before.backward();
    const torch::NoGradGuard no_grad;
    for (torch::Tensor& parameter : block->factors->parameters()) {
      ASSERT_GT(parameter.grad().abs().max().item<double>(), 0.0);
      parameter.sub_(1e-4 * parameter.grad());
    }
    EXPECT_LT(loss_of().item<double>(), before.item<double>());
  }
}

// A series in which node j repeats what node 0 had a step before, on a graph that does not say so.
TEST(LearnedFactors, LearnWhoHearsWhom) {
  torch::manual_seed(5);
  Model model(ModelOptions{.in_channels = 1,
                           .hidden_channels = 8,
                           .num_blocks = 1,
                           .group_shares = {1, 1},
                           .mode = Mode::kTemporal,
                           .readout = Readout::kForecast,
                           .factors = {.num_nodes = kRing, .rank = 2}});
  const graph::Operators gso = beside_adaptive(2);
  torch::optim::Adam adam(model->parameters(), torch::optim::AdamOptions(0.02));
  const torch::Tensor x = torch::randn({64, 4, kRing, 1});
  torch::Tensor y = torch::zeros({64, kRing, 1});
  y.select(1, 6).copy_(x.select(1, 2).select(1, 0));
  for (int step = 0; step < 200; ++step) {
    adam.zero_grad();
    (model->forward(x, gso) - y).square().mean().backward();
    adam.step();
  }
  // Nothing that all nodes do alike is better than zero everywhere.
  EXPECT_LT((model->forward(x, gso) - y).square().mean().item<double>(),
            0.5 * y.square().mean().item<double>());
}

TEST(LearnedFactors, BelongToTheirNodes) {
  EXPECT_THAT([] { Factors(FactorsOptions{.num_nodes = 3, .rank = 4}); },
              ThrowsMessage<c10::Error>(HasSubstr("got 4 for 3 nodes")));
  Block block(adaptive_block(StateKind::kStable, 3));
  EXPECT_THAT(
      [&] {
        block->recur(torch::randn({7, 3}), beside_adaptive(3, 7));
      },
      ThrowsMessage<c10::Error>(HasSubstr("gso_values of shape [2, 7, 3]")));
  const graph::Operators none = graph::make_operators(
      graph::make_ring(kRing), graph::gso_groups_from_text("sym_normalized,virtual_node"));
  EXPECT_THAT(
      [&] {
        block->recur(torch::randn({kRing, 3}), none);
      },
      ThrowsMessage<c10::Error>(HasSubstr("expected an adaptive operator")));
}

}  // namespace
}  // namespace mpssm::nn
