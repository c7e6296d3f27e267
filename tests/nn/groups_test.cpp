// SPDX-License-Identifier: MIT
// Blocks and models with operators per group of channels, against one group after the other in
// plain torch.
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <torch/torch.h>

#include "mpssm/graph/generators.h"
#include "mpssm/graph/operator_groups.h"
#include "mpssm/nn/model.h"
#include "mpssm/ops/recurrence.h"

#include "tests/support/gradcheck.h"
#include "tests/support/tensors.h"
#include "tests/support/threads.h"

namespace mpssm::nn {
namespace {

using mpssm::testing::close;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr std::int64_t kNodesOfGroups = 7;
constexpr StateKind kStates[] = {StateKind::kStable, StateKind::kDiagonal, StateKind::kDense};

/// One way streets: no two of the operators are alike, nor their transposes.
graph::Operators unlike_operators() {
  return graph::make_operators(graph::Graph::from_edges({.num_nodes = kNodesOfGroups,
                                                         .src = {0, 1, 2, 3, 4, 5, 6, 0, 2, 5},
                                                         .dst = {1, 2, 3, 4, 5, 6, 0, 3, 6, 1}},
                                                        graph::Direction::kDirected),
                               graph::gso_groups_from_text("random_walk:2,transpose,identity"));
}
const std::vector<std::int64_t> kShares = {2, 1, 1};

Block grouped_block(StateKind kind, std::int64_t hops_per_step = 1) {
  Block block(BlockOptions{.in_channels = 3,
                           .state_channels = 10,
                           .out_channels = 2,
                           .hops = 3,
                           .hops_per_step = hops_per_step,
                           .group_shares = kShares,
                           .state = {.kind = kind}});
  block->to(torch::kDouble);
  return block;
}

Model grouped_model(StateKind kind, Mode mode = Mode::kStatic) {
  Model model(ModelOptions{.in_channels = 3,
                           .hidden_channels = 8,
                           .out_channels = 2,
                           .num_blocks = 2,
                           .hops = 3,
                           .group_shares = kShares,
                           .mode = mode,
                           .state = {.kind = kind}});
  model->to(torch::kDouble);
  return model;
}

/// A (x W), `hops` times, for one group.
torch::Tensor hop(const torch::Tensor& a, torch::Tensor x, const torch::Tensor& w,
                  std::int64_t hops) {
  const torch::Tensor matrix = mpssm::testing::real_state_matrix(w);
  for (; hops > 0; --hops) x = a.matmul(x).matmul(matrix);
  return x;
}

/// X(1), ..., X(T) of C(1), ..., C(T) [T, N, C], group by group.
torch::Tensor states_by_groups(const Block& block, const torch::Tensor& c,
                               const graph::Operators& operators) {
  const std::vector<std::int64_t> begins = operators.channel_begins(c.size(-1));
  const std::vector<torch::Tensor> w = block->w_state->of_groups();
  std::vector<torch::Tensor> parts;
  for (std::size_t g = 0; g < w.size(); ++g) {
    const torch::Tensor a = mpssm::testing::to_dense(operators.of_group(g));
    const torch::Tensor part = c.slice(-1, begins[g], begins[g + 1]);
    std::vector<torch::Tensor> states = {part[0]};
    for (std::int64_t t = 1; t < part.size(0); ++t) {
      states.push_back(hop(a, states.back(), w[g], block->options().hops_per_step) + part[t]);
    }
    parts.push_back(torch::stack(states));
  }
  return torch::cat(parts, -1);
}

/// The same for an input that stays: X after all hops.
torch::Tensor state_by_groups(const Block& block, const torch::Tensor& u,
                              const graph::Operators& operators) {
  const torch::Tensor c = u.matmul(block->w_in);
  return states_by_groups(block, c.expand({block->options().hops + 1, -1, -1}), operators)[-1];
}

std::vector<std::string> names_of(const torch::nn::Module& module) {
  std::vector<std::string> names;
  for (const auto& parameter : module.named_parameters()) names.push_back(parameter.key());
  return names;
}

TEST(ChannelGroups, OfABlockRunApart) {
  torch::manual_seed(1);
  const torch::NoGradGuard no_grad;
  const graph::Operators operators = unlike_operators();
  for (const StateKind kind : kStates) {
    SCOPED_TRACE(std::string(to_string(kind)));
    Block block = grouped_block(kind);
    const auto u = torch::randn({kNodesOfGroups, 3}, torch::kDouble);
    const torch::Tensor x = state_by_groups(block, u, operators);
    EXPECT_TRUE(close(block->recur(u, operators), x, 1e-12));
    EXPECT_TRUE(close(block->forward(u, operators), block->decode(x), 1e-12));
  }
}

TEST(ChannelGroups, OfASeriesRunApartAndInPieces) {
  torch::manual_seed(2);
  const torch::NoGradGuard no_grad;
  const graph::Operators operators = unlike_operators();
  for (const StateKind kind : kStates) {
    for (const std::int64_t hops_per_step : {1, 2}) {
      SCOPED_TRACE(std::string(to_string(kind)));
      Block block = grouped_block(kind, hops_per_step);
      const auto u = torch::randn({6, kNodesOfGroups, 3}, torch::kDouble);
      const torch::Tensor x = states_by_groups(block, u.matmul(block->w_in), operators);
      const auto y = block->forward(u, operators, Mode::kTemporal, engine::Outputs::kAll);
      EXPECT_TRUE(close(y, block->decode(x), 1e-12));
      EXPECT_TRUE(close(block->forward(u, operators, Mode::kTemporal), y[5], 1e-12));
      // The state of one piece is where the next begins.
      ops::RecurrenceOptions how{.outputs = engine::Outputs::kAll, .hops_per_step = hops_per_step};
      std::vector<torch::Tensor> pieces;
      for (const auto& [begin, end] : {std::pair(0, 1), {1, 4}, {4, 6}}) {
        const auto piece = ops::recurrence_temporal(operators, u.slice(0, begin, end),
                                                    {block->w_state->forward(), block->w_in}, how);
        pieces.push_back(piece.output);
        how.initial = piece.state;
      }
      EXPECT_TRUE(close(torch::cat(pieces), x, 1e-12));
    }
  }
}

TEST(ChannelGroups, OfAModelAreThoseOfItsBlocks) {
  torch::manual_seed(3);
  const torch::NoGradGuard no_grad;
  const graph::Operators operators = unlike_operators();
  for (const StateKind kind : kStates) {
    SCOPED_TRACE(std::string(to_string(kind)));
    Model model = grouped_model(kind);
    const auto x = torch::randn({kNodesOfGroups, 3}, torch::kDouble);
    torch::nn::Linear encoder = model->encoder();
    torch::Tensor h = encoder->forward(x);
    for (std::size_t b = 0; b < model->blocks().size(); ++b) {
      Block block = model->blocks()[b];
      Norm norm = model->norms()[b];
      h = h + block->decode(state_by_groups(block, norm->forward(h), operators));
    }
    Norm norm = model->final_norm();
    const auto named = model->named_parameters();
    const torch::Tensor expected =
        torch::linear(norm->forward(h), named["readout_0.weight"], named["readout_0.bias"]);
    EXPECT_TRUE(close(model->forward(x, operators), expected, 1e-12));
  }
}

TEST(ChannelGroups, HaveTheNumericGradients) {
  const graph::Operators operators = unlike_operators();
  for (const StateKind kind : kStates) {
    for (const Mode mode : {Mode::kStatic, Mode::kTemporal}) {
      SCOPED_TRACE(std::string(to_string(kind)));
      torch::manual_seed(4);
      Block block = grouped_block(kind, mode == Mode::kTemporal ? 2 : 1);
      StateMatrix w = block->w_state;
      std::vector<torch::Tensor*> slots = {&block->w_in};
      for (torch::Tensor* slot : {&w->sigma, &w->nu, &w->theta}) {
        if (slot->defined()) slots.push_back(slot);
      }
      for (torch::Tensor& weight : w->group_weights) slots.push_back(&weight);
      std::vector<std::int64_t> sizes = {kNodesOfGroups, 3};
      if (mode == Mode::kTemporal) sizes.insert(sizes.begin(), 3);
      std::vector<torch::Tensor> inputs = {torch::randn(sizes, torch::kDouble)};
      for (const torch::Tensor* slot : slots) inputs.push_back(slot->detach().clone());
      mpssm::testing::expect_gradients(
          [&](const std::vector<torch::Tensor>& x) {
            for (std::size_t i = 0; i < slots.size(); ++i) *slots[i] = x[i + 1];
            return block->forward(
                x[0], operators, mode,
                mode == Mode::kTemporal ? engine::Outputs::kAll : engine::Outputs::kLast);
          },
          inputs);
    }
  }
}

TEST(ChannelGroups, OfAModelHaveTheNumericGradientOfItsInput) {
  const graph::Operators operators = unlike_operators();
  for (const StateKind kind : kStates) {
    for (const bool recompute : {false, true}) {
      torch::manual_seed(5);
      Model model = grouped_model(kind);
      model->set_recompute(recompute);
      mpssm::testing::expect_gradients(
          [&](const std::vector<torch::Tensor>& x) { return model->forward(x[0], operators); },
          {torch::randn({kNodesOfGroups, 3}, torch::kDouble)});
    }
  }
}

// A diagonal W is what it is without groups: the names of the weights, too.
TEST(ChannelGroups, NameTheirWeights) {
  EXPECT_THAT(names_of(*grouped_block(StateKind::kDense)->w_state),
              ElementsAre("weight_0", "weight_1", "weight_2"));
  for (const StateKind kind : {StateKind::kStable, StateKind::kDiagonal}) {
    EXPECT_EQ(names_of(*grouped_model(kind)),
              names_of(*Model(ModelOptions{.num_blocks = 2, .state = {.kind = kind}})));
  }
  const auto named = grouped_model(StateKind::kDense)->named_parameters();
  // 8 channels by shares 2, 1, 1.
  EXPECT_EQ(named["block_0.w_state.weight_0"].sizes(), (std::vector<std::int64_t>{4, 4}));
  EXPECT_EQ(named["block_1.w_state.weight_2"].sizes(), (std::vector<std::int64_t>{2, 2}));
}

TEST(ChannelGroups, TrainToTheSameBitsOnAnyNumberOfThreads) {
  const graph::Operators operators =
      graph::make_operators(graph::make_board(40, 40),
                            graph::gso_groups_from_text("sym_normalized,random_walk,adjacency"));
  for (const StateKind kind : {StateKind::kStable, StateKind::kDense}) {
    for (const auto precision : {engine::Precision::kFloat32, engine::Precision::kBf16}) {
      mpssm::testing::expect_same_bits([&] {
        Model model(ModelOptions{.in_channels = 4,
                                 .hidden_channels = 100,
                                 .num_blocks = 1,
                                 .group_shares = {1, 1, 1},
                                 .state = {.kind = kind},
                                 .precision = precision});
        model->forward(torch::randn({1600, 4}), operators)
            .square()
            .sum(-1)
            .cumsum(0)[-1]
            .backward();
        std::vector<torch::Tensor> gradients;
        for (const auto& parameter : model->parameters()) gradients.push_back(parameter.grad());
        return gradients;
      });
    }
  }
}

TEST(ChannelGroups, AreAsManyAsTheOperators) {
  Block block = grouped_block(StateKind::kStable);
  const auto u = torch::randn({kNodesOfGroups, 3}, torch::kDouble);
  EXPECT_THAT([&] { block->forward(u, graph::make_gso(graph::make_ring(kNodesOfGroups))); },
              ThrowsMessage<c10::Error>(HasSubstr("operators of 3 groups of channels, got 1")));
  EXPECT_THAT([&] { Block(BlockOptions{.state_channels = 4, .group_shares = kShares}); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("each of 3 groups, got 4 channels")));
}

}  // namespace
}  // namespace mpssm::nn
