// SPDX-License-Identifier: MIT
// Jacobians of trained networks: against the closed form where it exists, against differences where
// not.
#include "mpssm/analysis/influence.h"

#include <cmath>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include <torch/torch.h>

#include "mpssm/analysis/all_pairs.h"
#include "mpssm/analysis/state_norms.h"
#include "mpssm/graph/generators.h"
#include "mpssm/nn/baselines/gcn.h"
#include "mpssm/nn/model.h"
#include "mpssm/ops/runtime.h"
#include "mpssm/run/train_into.h"
#include "mpssm/task/problem.h"

#include "tests/support/scratch.h"
#include "tests/support/tensors.h"

namespace mpssm::analysis {
namespace {

struct Trained {
  run::Experiment experiment;
  nn::ModelImpl* model;
};

/// A network that has seen some steps on a board of 8 x 8 cells.
Trained train_small(nn::StateKind state) {
  train::Config config;
  config.data.name = "board:8x8";
  config.model.channels = 8;
  config.model.blocks = 2;
  config.model.hops = 3;
  config.model.state = state;
  config.train.epochs = 15;
  Trained trained{run::set_up(config), nullptr};
  const testing::Scratch scratch;
  EXPECT_TRUE(run::train_into(run::RunFolder(scratch / "run", false), trained.experiment, false)
                  .has_value());
  trained.model = dynamic_cast<nn::ModelImpl*>(trained.experiment.model.module.get());
  return trained;
}

// The theorem on a block as it was learned: d X_t^(i) / d U_s^(j) = (A^(t-s))_ij (B W^(t-s))'.
TEST(TrainedBlock, JacobianByAutogradIsTheClosedForm) {
  for (const auto& [state, name] : nn::kStateKinds) {
    const Trained trained = train_small(state);
    const graph::Gso gso = trained.experiment.problem->sample(0).gso.only();
    const std::int64_t n = gso.num_nodes();
    constexpr std::int64_t kSteps = 6;
    for (const torch::Dtype type : {torch::kFloat, torch::kDouble}) {
      trained.model->to(type);
      for (const nn::Block& block : trained.model->blocks()) {
        auto u = torch::randn({kSteps, n, block->w_in.size(0)}, type).requires_grad_();
        nn::Block mutable_block = block;
        const auto x = mutable_block->recur(u, gso, nn::Mode::kTemporal);
        const std::int64_t i = 27;
        std::vector<torch::Tensor> rows;
        for (std::int64_t c = 0; c < x.size(1); ++c) {
          rows.push_back(torch::autograd::grad({x[i][c]}, {u}, {}, true)[0]);
        }
        const auto actual = torch::stack(rows);  // [C, T, N, in]
        const auto w = testing::real_state_matrix(block->w_state->forward().detach());
        const auto b = block->w_in.detach().to(torch::kDouble);
        auto expected = torch::zeros_like(actual, torch::kDouble);
        for (std::int64_t s = 0; s < kSteps; ++s) {
          const std::int64_t tau = kSteps - 1 - s;
          const auto power = torch::tensor(dense_power(gso, tau, ops::Threads()), torch::kDouble)
                                 .reshape({n, n})[i];
          const auto per_channel = torch::matmul(b, torch::matrix_power(w, tau)).t();  // [C, in]
          expected.select(1, s).copy_(power.reshape({1, n, 1}) * per_channel.unsqueeze(1));
        }
        EXPECT_TRUE(
            testing::close(actual.to(torch::kDouble), expected, testing::relative_tolerance(type)))
            << name;
      }
    }
  }
}

TEST(TrainedBlock, SensitivityIsTheEntryTimesTheNormOfThePower) {
  const Trained trained = train_small(nn::StateKind::kDense);
  trained.model->to(torch::kDouble);
  const graph::Gso gso = trained.experiment.problem->sample(0).gso.only();
  const auto w = trained.model->blocks()[1]->w_state->forward().detach();
  const std::int64_t taus[] = {5};
  const double norm = power_norms(w, taus)[0];
  const auto a5 = dense_power(gso, 5, ops::Threads());
  for (const std::int64_t j : {0, 9, 18}) {
    const double entry = a5[20 * gso.num_nodes() + j];
    const auto jacobian = entry * torch::matrix_power(w, 5).t();
    EXPECT_NEAR(spectral_norm(jacobian), std::abs(entry) * norm, 1e-12);
  }
}

TEST(OutputJacobian, IsTheLimitOfDifferences) {
  const Trained trained = train_small(nn::StateKind::kStable);
  trained.model->to(torch::kDouble);
  const task::Problem::Sample sample = trained.experiment.problem->sample(0);
  const graph::Operators& gso = sample.gso;
  const torch::Tensor x = sample.x.to(torch::kDouble);
  const std::int64_t target = 13;
  const auto jacobian = output_jacobian(*trained.model, x, gso, target);
  ASSERT_EQ(jacobian.sizes(), (std::vector<std::int64_t>{1, 64, x.size(1)}));
  trained.model->eval();
  const double h = 1e-6;
  for (const std::int64_t j : {13, 14, 40, 63}) {
    for (std::int64_t g = 0; g < x.size(1); g += 3) {
      auto moved = x.clone();
      moved[j][g] += h;
      const auto up = trained.model->forward(moved, gso)[target][0].item<double>();
      moved[j][g] -= 2 * h;
      const auto down = trained.model->forward(moved, gso)[target][0].item<double>();
      EXPECT_NEAR(jacobian[0][j][g].item<double>(), (up - down) / (2 * h), 1e-7);
    }
  }
}

TEST(OutputJacobian, LeavesTheNetworkAsItWas) {
  const Trained trained = train_small(nn::StateKind::kStable);
  const task::Problem::Sample sample = trained.experiment.problem->sample(0);
  const torch::Tensor& x = sample.x;
  const graph::Operators& gso = sample.gso;
  trained.model->train();
  for (auto& parameter : trained.model->parameters()) parameter.mutable_grad().reset();
  output_jacobian(*trained.model, x, gso, 0);
  EXPECT_TRUE(trained.model->is_training());
  for (const auto& parameter : trained.model->parameters()) {
    EXPECT_FALSE(parameter.grad().defined());
  }
  EXPECT_FALSE(x.requires_grad());
  EXPECT_THROW(output_jacobian(*trained.model, x, gso, 64), std::out_of_range);
  EXPECT_THROW(output_jacobian(*trained.model, x, gso, -1), std::out_of_range);
}

TEST(InfluenceOf, AddsUpByHopAndEndsWhereMessagesEnd) {
  torch::manual_seed(4);
  const auto gso = graph::make_gso(graph::make_path(12));
  const auto x = torch::randn({12, 3});
  nn::Model model(nn::ModelOptions{
      .in_channels = 3, .hidden_channels = 6, .out_channels = 2, .num_blocks = 2, .hops = 3});
  nn::Gcn gcn(nn::LayeredOptions{.in_channels = 3,
                                 .hidden_channels = 6,
                                 .out_channels = 2,
                                 .num_layers = 6,
                                 .residual = true});
  for (nn::GraphModule* module :
       {static_cast<nn::GraphModule*>(model.get()), static_cast<nn::GraphModule*>(gcn.get())}) {
    const auto jacobian = output_jacobian(*module, x, gso, 1);
    const Influence influence = influence_of(jacobian, gso, 1);
    ASSERT_EQ(influence.of_hop.size(), 11U);
    const double total = jacobian.abs().sum().item<double>();
    EXPECT_NEAR(std::accumulate(influence.of_hop.begin(), influence.of_hop.end(), 0.0), total,
                1e-5 * total);
    for (std::size_t hop = 0; hop < influence.of_hop.size(); ++hop) {
      // Two blocks of three hops, or six layers of one: six hops and not one more.
      EXPECT_EQ(influence.of_hop[hop] > 0.0, hop <= 6) << hop;
    }
    EXPECT_EQ(influence.nodes_at, (std::vector<std::int64_t>{1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1}));
    EXPECT_NEAR(influence.of_hop[1], influence.of_node[0] + influence.of_node[2], 1e-12);
    double weighted = 0.0;
    for (std::size_t hop = 0; hop < influence.of_hop.size(); ++hop) {
      weighted += static_cast<double>(hop) * influence.of_hop[hop];
    }
    EXPECT_NEAR(influence.mean_hop, weighted / total, 1e-5);
    const auto top = most_influential(influence.of_node, 3);
    ASSERT_EQ(top.size(), 3U);
    for (const std::int64_t node : top) EXPECT_GE(influence.of_node[node], influence.of_node[11]);
    EXPECT_GE(influence.of_node[top[0]], influence.of_node[top[1]]);
    EXPECT_EQ(most_influential(influence.of_node, 100).size(), 12U);
  }
}

TEST(InfluenceOf, NodesThatCannotBeHeardHaveNone) {
  torch::manual_seed(5);
  const auto gso = graph::make_gso(graph::make_caveman(2, 3));
  nn::Model model(nn::ModelOptions{.in_channels = 2, .hidden_channels = 4, .out_channels = 1});
  const auto jacobian = output_jacobian(*model, torch::randn({6, 2}), gso, 0);
  const Influence influence = influence_of(jacobian, gso, 0);
  for (std::int64_t j = 3; j < 6; ++j) {
    EXPECT_EQ(influence.of_node[j], 0.0);
    EXPECT_EQ(influence.hops[j], -1);
    EXPECT_EQ(spectral_norm(pair_jacobian(jacobian, j)), 0.0);
  }
  EXPECT_GT(spectral_norm(pair_jacobian(jacobian, 1)), 0.0);
}

TEST(InfluenceOf, WindowsOfASeriesAddUpOverTime) {
  torch::manual_seed(6);
  const auto gso = graph::make_gso(graph::make_ring(5));
  const auto x = torch::randn({4, 5, 2});
  nn::Model model(nn::ModelOptions{.in_channels = 2,
                                   .hidden_channels = 4,
                                   .out_channels = 3,
                                   .num_blocks = 1,
                                   .mode = nn::Mode::kTemporal,
                                   .readout = nn::Readout::kForecast});
  const auto jacobian = output_jacobian(*model, x, gso, 2);
  ASSERT_EQ(jacobian.sizes(), (std::vector<std::int64_t>{3, 4, 5, 2}));
  const Influence influence = influence_of(jacobian, gso, 2);
  for (std::int64_t j = 0; j < 5; ++j) {
    EXPECT_NEAR(influence.of_node[j], jacobian.select(2, j).abs().sum().item<double>(), 1e-6);
  }
  EXPECT_EQ(pair_jacobian(jacobian, 3).sizes(), (std::vector<std::int64_t>{3, 8}));
}

}  // namespace
}  // namespace mpssm::analysis
