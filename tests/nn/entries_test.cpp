// SPDX-License-Identifier: MIT
#include "mpssm/nn/entries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <torch/torch.h>

#include "mpssm/graph/generators.h"
#include "mpssm/nn/model.h"

#include "tests/support/gradcheck.h"
#include "tests/support/tensors.h"

namespace mpssm::nn {
namespace {

using mpssm::testing::close;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr std::int64_t kNodes = 9;

graph::Gso no_loops() {
  return graph::make_gso(graph::make_random_connected(kNodes, 14, 5),
                         {.kind = graph::GsoKind::kAdjacency});
}

Block block_with(EntriesKind kind, const graph::Gso& gso, StateKind state, engine::Plan plan) {
  Block block(BlockOptions{.in_channels = 3,
                           .state_channels = 6,
                           .out_channels = 2,
                           .hops = 4,
                           .state = {.kind = state},
                           .entries = kind,
                           .num_entries = gso.num_nonzeros(),
                           .plan = plan});
  block->to(torch::kDouble);
  const torch::NoGradGuard no_grad;
  for (torch::Tensor& parameter : block->entries->parameters()) parameter.normal_(0.0, 0.4);
  return block;
}

/// A as the header says, from the block's parameters, in plain torch.
torch::Tensor dense_operator(const Block& block, const graph::Gso& gso, const torch::Tensor& u) {
  torch::Tensor a = mpssm::testing::to_dense(gso);
  if (block->options().entries == EntriesKind::kGin) {
    return a + (1.0 + block->entries->epsilon) * torch::eye(kNodes, torch::kDouble);
  }
  const torch::Tensor scores = block->options().entries == EntriesKind::kAttention
                                   ? u.matmul(block->w_in).matmul(block->entries->attention)
                                   : torch::Tensor();
  for (std::int64_t i = 0; i < kNodes; ++i) {
    const torch::Tensor columns = torch::nonzero(a[i]).flatten();
    if (block->options().entries == EntriesKind::kFree) {
      a[i].index_add_(0, columns,
                      block->entries->change.slice(0, gso.row_ptr()[i], gso.row_ptr()[i + 1]));
      continue;
    }
    const torch::Tensor of_row = torch::softmax(
        torch::leaky_relu(scores[i][0] + scores.select(1, 1).index_select(0, columns), 0.2), 0);
    a[i].index_copy_(0, columns, of_row);
  }
  return a;
}

torch::Tensor recurrence_with(const torch::Tensor& a, const Block& block, const torch::Tensor& u) {
  const torch::Tensor c = u.matmul(block->w_in);
  const torch::Tensor w = block->w_state->forward();
  torch::Tensor x = c;
  for (std::int64_t k = 0; k < block->options().hops; ++k) {
    const torch::Tensor moved = a.matmul(x);
    const torch::Tensor times =
        w.is_complex()
            ? torch::view_as_real(torch::view_as_complex(moved.unflatten(-1, {w.numel(), 2})) * w)
                  .flatten(-2)
            : moved.matmul(w);
    x = times + c;
  }
  return x;
}

TEST(Entries, AreWhatTheHeaderSays) {
  torch::manual_seed(1);
  const torch::NoGradGuard no_grad;
  const auto u = torch::randn({kNodes, 3}, torch::kDouble);
  for (const EntriesKind kind : {EntriesKind::kFree, EntriesKind::kGin, EntriesKind::kAttention}) {
    for (const graph::Gso& gso :
         {no_loops(), graph::make_gso(graph::make_random_connected(kNodes, 14, 5))}) {
      for (const auto& [state, plan] : {std::pair(StateKind::kDense, engine::Plan::kAuto),
                                        {StateKind::kStable, engine::Plan::kStepwise},
                                        {StateKind::kStable, engine::Plan::kDiagonal},
                                        {StateKind::kStable, engine::Plan::kReference}}) {
        Block block = block_with(kind, gso, state, plan);
        const torch::Tensor a = dense_operator(block, gso, u);
        EXPECT_TRUE(close(block->recur(u, gso), recurrence_with(a, block, u), 1e-10))
            << to_string(kind);
        EXPECT_TRUE(close(mpssm::testing::to_dense(block->operator_for(u, gso).only()), a, 1e-12));
      }
    }
  }
}

TEST(Entries, HaveTheNumericGradients) {
  torch::manual_seed(2);
  const graph::Gso gso = no_loops();
  for (const EntriesKind kind : {EntriesKind::kFree, EntriesKind::kGin, EntriesKind::kAttention}) {
    for (const StateKind state : {StateKind::kDense, StateKind::kStable}) {
      Block block = block_with(kind, gso, state, engine::Plan::kAuto);
      torch::Tensor parameter = block->entries->parameters()[0];
      const auto with = [&](const std::vector<torch::Tensor>& x) {
        for (torch::Tensor* slot :
             {&block->entries->change, &block->entries->epsilon, &block->entries->attention}) {
          if (slot->defined()) *slot = x[0];
        }
        return block->forward(x[1], gso);
      };
      mpssm::testing::expect_gradients(
          with, {parameter.detach(), torch::randn({kNodes, 3}, torch::kDouble)});
    }
  }
}

TEST(Entries, FreeOnesStartAtTheOperatorAndFixedOnesAddNoParameter) {
  const graph::Gso gso = no_loops();
  const auto model_with = [&](EntriesKind kind) {
    torch::manual_seed(3);
    return Model(ModelOptions{.in_channels = 3,
                              .hidden_channels = 8,
                              .num_blocks = 2,
                              .entries = kind,
                              .num_entries = gso.num_nonzeros()});
  };
  Model fixed = model_with(EntriesKind::kFixed);
  Model free = model_with(EntriesKind::kFree);
  const auto x = torch::randn({kNodes, 3});
  EXPECT_TRUE(close(fixed->forward(x, gso), free->forward(x, gso), 1e-5));
  EXPECT_EQ(num_parameters(*free), num_parameters(*fixed) + 2 * gso.num_nonzeros());
  EXPECT_EQ(num_parameters(*model_with(EntriesKind::kGin)), num_parameters(*fixed) + 2);
  EXPECT_EQ(num_parameters(*model_with(EntriesKind::kAttention)), num_parameters(*fixed) + 2 * 16);
}

TEST(Entries, RunAgainInTheBackwardPassWithTheSameNumbers) {
  const graph::Gso gso = no_loops();
  for (const EntriesKind kind : {EntriesKind::kFree, EntriesKind::kGin, EntriesKind::kAttention}) {
    torch::manual_seed(4);
    Model model(ModelOptions{.in_channels = 3,
                             .hidden_channels = 8,
                             .num_blocks = 2,
                             .entries = kind,
                             .num_entries = gso.num_nonzeros()});
    const auto x = torch::randn({kNodes, 3});
    const auto gradients = [&] {
      return torch::autograd::grad({model->forward(x, gso).square().sum()}, model->parameters());
    };
    const auto once = gradients();
    model->set_recompute(true);
    const auto again = gradients();
    for (std::size_t i = 0; i < once.size(); ++i) EXPECT_TRUE(once[i].equal(again[i]));
  }
}

TEST(Entries, OfAModelAreThoseOfItsBlocks) {
  torch::manual_seed(5);
  const graph::Gso gso = no_loops();
  Model model(ModelOptions{
      .in_channels = 3, .hidden_channels = 8, .num_blocks = 2, .entries = EntriesKind::kAttention});
  const auto x = torch::randn({kNodes, 3});
  const graph::Gso second = model->block_operator(1, x, gso).only();
  for (std::int64_t i = 0; i < kNodes; ++i) {
    double sum = 0.0;
    for (std::int64_t e = second.row_ptr()[i]; e < second.row_ptr()[i + 1]; ++e) {
      sum += second.values<double>()[e];
    }
    EXPECT_NEAR(sum, 1.0, 1e-6);
  }
  EXPECT_FALSE(mpssm::testing::close(
      mpssm::testing::to_dense(second),
      mpssm::testing::to_dense(model->block_operator(0, x, gso).only()), 1e-3));
}

TEST(Entries, SayWhatIsWrong) {
  const graph::Gso gso = no_loops();
  Model free(ModelOptions{.entries = EntriesKind::kFree, .num_entries = 7});
  EXPECT_THAT(
      [&] {
        free->forward(torch::randn({kNodes, 1}), gso);
      },
      ThrowsMessage<c10::Error>(HasSubstr("has 7 free entries, got an operator with 28")));
  EXPECT_THAT([&] { Model(ModelOptions{.entries = EntriesKind::kFree}); },
              ThrowsMessage<c10::Error>(HasSubstr("free entries need the one operator")));
  EXPECT_THAT(
      [&] { Model(ModelOptions{.mode = Mode::kTemporal, .entries = EntriesKind::kAttention}); },
      ThrowsMessage<c10::Error>(HasSubstr("entries by attention need static mode")));
  Model attention(ModelOptions{.entries = EntriesKind::kAttention});
  EXPECT_THAT(
      [&] {
        attention->forward(torch::randn({2, kNodes, 1}), gso);
      },
      ThrowsMessage<c10::Error>(HasSubstr("attention takes the features of one graph")));
  Model doubling(ModelOptions{.state = {.kind = StateKind::kDense},
                              .entries = EntriesKind::kGin,
                              .plan = engine::Plan::kDoubling});
  EXPECT_THAT(
      [&] {
        doubling->forward(torch::randn({kNodes, 1}), gso);
      },
      ThrowsMessage<c10::Error>(HasSubstr("only plans stepwise and diagonal")));
}

}  // namespace
}  // namespace mpssm::nn
