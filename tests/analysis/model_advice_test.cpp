// SPDX-License-Identifier: MIT
// Advice about a network against brute force: every edge by differences of the loss in double,
// Shapley values by all coalitions, integrated gradients by their axioms, bounds by attacks.
#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <numeric>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <torch/torch.h>

#include "mpssm/analysis/attribution.h"
#include "mpssm/analysis/edge_effects.h"
#include "mpssm/analysis/graph_edit.h"
#include "mpssm/analysis/robustness.h"
#include "mpssm/graph/generators.h"
#include "mpssm/nn/baselines/gcn.h"
#include "mpssm/nn/model.h"

#include "tests/support/tensors.h"

namespace mpssm::analysis {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

struct Setting {
  graph::Graph graph;
  graph::Gso gso;
  nn::Model model{nullptr};
  torch::Tensor x = {};
};

Setting make_setting(const graph::Graph& graph, nn::ModelOptions options,
                     graph::GsoKind kind = graph::GsoKind::kSymNormalized,
                     std::int64_t num_steps = 5) {
  torch::manual_seed(11);
  options.in_channels = 3;
  options.hidden_channels = 6;
  options.out_channels = 2;
  Setting setting{graph, graph::make_gso(graph, {.kind = kind}), nn::Model(options)};
  setting.model->to(torch::kDouble);
  setting.model->eval();
  const std::int64_t n = graph.num_nodes();
  setting.x = options.mode == nn::Mode::kStatic ? torch::randn({n, 3}, torch::kDouble)
                                                : torch::randn({num_steps, n, 3}, torch::kDouble);
  return setting;
}

NetworkLoss loss_on(const Setting& setting) {
  return [x = setting.x, gso = setting.gso](nn::GraphModule& network) {
    const torch::Tensor y = network.forward(x, gso);
    torch::manual_seed(3);
    return (y - torch::randn(y.sizes(), torch::kDouble)).square().sum();
  };
}

/// The graph with another weight of one edge.
graph::Graph with_weight(const graph::Graph& graph, std::int32_t u, std::int32_t v, double weight) {
  return edited(edited(graph, {.remove = {{u, v}}}), {.add = {{u, v}}, .weight = weight});
}

double loss_on_graph(Setting& setting, const graph::Graph& graph) {
  const torch::NoGradGuard no_grad;
  Setting other = setting;
  other.gso = graph::make_gso(graph, {.kind = setting.gso.kind()});
  return loss_on(other)(*setting.model).item<double>();
}

std::vector<nn::ModelOptions> kinds_of_networks() {
  return {{.num_blocks = 2, .hops = 3},
          {.num_blocks = 1, .hops = 4, .state = {.kind = nn::StateKind::kDense}},
          {.num_blocks = 2,
           .hops = 2,
           .state = {.kind = nn::StateKind::kDiagonal},
           .norm = nn::NormKind::kBatch,
           .residual = false},
          {.num_blocks = 2, .mode = nn::Mode::kTemporal, .readout = nn::Readout::kForecast}};
}

TEST(EdgeEffects, SlopeOfEveryEdgeIsTheCentralDifferenceOfTheLoss) {
  for (const auto& options : kinds_of_networks()) {
    for (const graph::GsoKind kind : {graph::GsoKind::kSymNormalized, graph::GsoKind::kRandomWalk,
                                      graph::GsoKind::kLaplacian}) {
      Setting setting = make_setting(graph::make_random_connected(9, 14, 3), options, kind);
      const EdgesAnswer found = answer(EdgesQuestion{.network = *setting.model,
                                                     .graph = setting.graph,
                                                     .gso = setting.gso,
                                                     .loss = loss_on(setting),
                                                     .count = 100,
                                                     .confirm = 0});
      EXPECT_NEAR(found.loss, loss_on_graph(setting, setting.graph), 1e-12 * found.loss);
      EXPECT_EQ(found.edges, setting.graph.num_edges());
      EXPECT_EQ(std::ssize(found.harmful), found.harmful_count);
      std::vector<EdgeEffect> all = found.harmful;
      all.insert(all.end(), found.useful.begin(), found.useful.end());
      ASSERT_EQ(std::ssize(all), found.edges);
      for (const EdgeEffect& edge : all) {
        constexpr double kStep = 1e-5;
        const auto at = [&](double weight) {
          return loss_on_graph(setting, with_weight(setting.graph, edge.u, edge.v, weight));
        };
        const double numeric = (at(1.0 + kStep) - at(1.0 - kStep)) / (2 * kStep);
        EXPECT_NEAR(edge.slope, numeric, 1e-6 * std::max(1.0, std::abs(numeric)))
            << edge.u << " " << edge.v << " " << to_string(kind);
      }
    }
  }
}

TEST(EdgeEffects, DirectedEdgesCountOneWay) {
  const auto graph = graph::Graph::from_edges(
      {.num_nodes = 5, .src = {0, 1, 2, 3, 4, 0}, .dst = {1, 2, 3, 4, 0, 3}},
      graph::Direction::kDirected);
  Setting setting = make_setting(graph, {.num_blocks = 2, .hops = 3}, graph::GsoKind::kRandomWalk);
  const EdgesAnswer found = answer(EdgesQuestion{.network = *setting.model,
                                                 .graph = graph,
                                                 .gso = setting.gso,
                                                 .loss = loss_on(setting),
                                                 .count = 10,
                                                 .confirm = 10});
  EXPECT_EQ(found.edges, 6);
  for (const EdgeEffect& edge : found.harmful) {
    EXPECT_TRUE(has_edge(graph, edge.v, edge.u));
    const double without = loss_on_graph(setting, edited(graph, {.remove = {{edge.u, edge.v}}}));
    EXPECT_NEAR(*edge.loss_without, without, 1e-12 * without);
  }
}

TEST(EdgeEffects, TriesWhatItCallsHarmful) {
  Setting setting = make_setting(graph::make_grid(4, 4), {.num_blocks = 2, .hops = 2});
  const EdgesAnswer found = answer(EdgesQuestion{.network = *setting.model,
                                                 .graph = setting.graph,
                                                 .gso = setting.gso,
                                                 .loss = loss_on(setting),
                                                 .count = 4,
                                                 .confirm = 2});
  ASSERT_GE(found.harmful.size(), 2u);
  GraphEdit all;
  for (std::size_t k = 0; k < found.harmful.size(); ++k) {
    const EdgeEffect& edge = found.harmful[k];
    EXPECT_GT(edge.expected_gain(), 0.0);
    EXPECT_EQ(edge.loss_without.has_value(), k < 2);
    all.remove.emplace_back(edge.u, edge.v);
  }
  EXPECT_DOUBLE_EQ(*found.loss_without_harmful, loss_on_graph(setting, edited(setting.graph, all)));
}

TEST(EdgeEffects, LeavesTheNetworkAsItWasAndRefusesOthers) {
  Setting setting = make_setting(graph::make_path(4), {.num_blocks = 1, .hops = 2});
  setting.model->train();
  edge_gradient({.network = *setting.model,
                 .graph = setting.graph,
                 .gso = setting.gso,
                 .loss = loss_on(setting)});
  EXPECT_TRUE(setting.model->is_training());
  for (const auto& parameter : setting.model->parameters()) {
    EXPECT_FALSE(parameter.grad().defined());
  }
  nn::Gcn gcn(nn::LayeredOptions{.in_channels = 3, .hidden_channels = 4, .out_channels = 2});
  EXPECT_THAT(
      [&] {
        edge_gradient({.network = *gcn,
                       .graph = setting.graph,
                       .gso = setting.gso,
                       .loss = loss_on(setting)});
      },
      ThrowsMessage<std::invalid_argument>(HasSubstr("no linear recurrence")));
}

/// X_i when only the nodes of `speaking` send something, by the definition of the block.
torch::Tensor state_of_coalition(Setting& setting, std::int64_t target, std::int64_t block,
                                 unsigned speaking) {
  const torch::NoGradGuard no_grad;
  torch::Tensor u = setting.model->trace(setting.x, setting.gso).u[block - 1].clone();
  for (std::int64_t j = 0; j < setting.graph.num_nodes(); ++j) {
    if (((speaking >> j) & 1U) == 0) u.select(-2, j).zero_();
  }
  nn::Block mutable_block = setting.model->blocks()[block - 1];
  return mutable_block->recur(u, setting.gso, setting.model->options().mode)[target];
}

TEST(Attribution, SharesInAStateAreShapleyValuesByAllCoalitions) {
  constexpr std::int64_t kNodes = 10;
  for (const auto& options : kinds_of_networks()) {
    Setting setting = make_setting(graph::make_random_connected(kNodes, 15, 2), options);
    constexpr std::int64_t kTarget = 4;
    for (std::int64_t block = 1; block <= options.num_blocks; ++block) {
      const StateShares shares = state_shares({.network = *setting.model,
                                               .x = setting.x,
                                               .gso = setting.gso,
                                               .target = kTarget,
                                               .block = block});
      const torch::Tensor whole = state_of_coalition(setting, kTarget, block, (1U << kNodes) - 1);
      EXPECT_NEAR(shares.size, whole.norm().item<double>(), 1e-10);
      std::vector<double> worth;
      for (unsigned s = 0; s < (1U << kNodes); ++s) {
        worth.push_back(
            (state_of_coalition(setting, kTarget, block, s) * whole).sum().item<double>() /
            whole.square().sum().item<double>());
      }
      std::vector<double> factorial = {1.0};
      for (int k = 1; k <= kNodes; ++k) factorial.push_back(factorial.back() * k);
      for (std::int64_t j = 0; j < kNodes; ++j) {
        double shapley = 0.0;
        for (unsigned s = 0; s < (1U << kNodes); ++s) {
          if (((s >> j) & 1U) != 0) continue;
          const int size = std::popcount(s);
          shapley += factorial[size] * factorial[kNodes - 1 - size] / factorial[kNodes] *
                     (worth[s | (1U << j)] - worth[s]);
        }
        EXPECT_NEAR(shares.of_node[j], shapley, 1e-9) << "node " << j << " block " << block;
      }
      EXPECT_NEAR(std::accumulate(shares.of_node.begin(), shares.of_node.end(), 0.0), 1.0, 1e-10);
    }
  }
}

TEST(Attribution, OfTheFirstBlockANodeOutOfReachHasNoShare) {
  Setting setting = make_setting(graph::make_path(9), {.num_blocks = 2, .hops = 2});
  const StateShares shares =
      state_shares({.network = *setting.model, .x = setting.x, .gso = setting.gso, .target = 0});
  for (std::size_t j = 3; j < 9; ++j) EXPECT_EQ(shares.of_node[j], 0.0) << j;
  EXPECT_NE(shares.of_node[2], 0.0);
}

TEST(Attribution, IntegratedGradientsAddUpAndAreExactForALinearNetwork) {
  Setting setting = make_setting(graph::make_grid(3, 4), {.num_blocks = 2, .hops = 3});
  AttributionQuestion question{
      .network = *setting.model, .x = setting.x, .gso = setting.gso, .target = 5};
  double gap_before = INFINITY;
  for (const std::int64_t steps : {8, 64, 512}) {
    question.steps = steps;
    const PathShares shares = path_shares(question);
    // The error of midpoints falls with the square of their number, by 64 here.
    EXPECT_LT(std::abs(shares.gap), gap_before / 16);
    gap_before = std::abs(shares.gap);
    const double sum = std::accumulate(shares.of_node.begin(), shares.of_node.end(), 0.0);
    EXPECT_NEAR(sum + shares.gap, shares.value - shares.baseline, 1e-12);
  }
  EXPECT_LT(gap_before, 1e-5);
  // Without norms and with an identity in between the network is linear: share = slope times way.
  Setting linear = make_setting(graph::make_grid(3, 4), {.num_blocks = 2,
                                                         .hops = 3,
                                                         .activation = nn::Activation::kIdentity,
                                                         .norm = nn::NormKind::kNone,
                                                         .state_norm = nn::NormKind::kNone});
  const PathShares shares = path_shares({.network = *linear.model,
                                         .x = linear.x,
                                         .gso = linear.gso,
                                         .target = 5,
                                         .steps = 1,
                                         .output = 1});
  EXPECT_NEAR(shares.gap, 0.0, 1e-12);
  const torch::NoGradGuard no_grad;
  const torch::Tensor mean = linear.x.mean(0);
  for (std::int64_t j = 0; j < 12; ++j) {
    torch::Tensor without = linear.x.clone();
    without[j] = mean;
    const double alone =
        shares.value - linear.model->forward(without, linear.gso)[5][1].item<double>();
    EXPECT_NEAR(shares.of_node[j], alone, 1e-12) << j;
  }
}

TEST(Attribution, SaysWhatIsNotThere) {
  Setting setting = make_setting(graph::make_path(4), {.num_blocks = 1, .hops = 2});
  AttributionQuestion question{.network = *setting.model, .x = setting.x, .gso = setting.gso};
  question.target = 4;
  EXPECT_THAT([&] { answer(question); },
              ThrowsMessage<std::out_of_range>(HasSubstr("a node below 4, got 4")));
  question.target = 0;
  question.block = 2;
  EXPECT_THAT([&] { answer(question); },
              ThrowsMessage<std::out_of_range>(HasSubstr("a block from 1 to 1, got 2")));
}

TEST(Robustness, NoAttackPassesTheBound) {
  for (const auto& options : kinds_of_networks()) {
    Setting setting = make_setting(graph::make_random_connected(10, 15, 4), options);
    for (const double epsilon : {1e-3, 0.1, 3.0}) {
      const std::vector<std::int64_t> nodes = {1, 4, 7};
      const Robustness found = answer(RobustnessQuestion{.network = *setting.model,
                                                         .x = setting.x,
                                                         .gso = setting.gso,
                                                         .target = 3,
                                                         .nodes = nodes,
                                                         .epsilon = epsilon,
                                                         .of_classes = true});
      ASSERT_EQ(found.states.size(), options.num_blocks == 1 ? 1u : 2u);
      for (const StateBound& state : found.states) {
        EXPECT_GT(state.found, 0.0);
        EXPECT_LE(state.found, state.bound * (1 + 1e-9));
      }
      ASSERT_TRUE(found.output_bound.has_value());
      EXPECT_LE(found.output_found, *found.output_bound * (1 + 1e-9));
      // And many changes that nobody searched for.
      const torch::NoGradGuard no_grad;
      torch::manual_seed(5);
      const auto before = setting.model->trace(setting.x, setting.gso);
      const auto y = setting.model->forward(setting.x, setting.gso)[3];
      for (int trial = 0; trial < 40; ++trial) {
        torch::Tensor moved = setting.x.clone();
        for (const std::int64_t node : nodes) {
          torch::Tensor rows = moved.select(-2, node);
          const torch::Tensor direction = torch::randn_like(rows);
          rows += epsilon * direction / direction.norm(2, -1, true);
        }
        const auto after = setting.model->trace(moved, setting.gso);
        for (const StateBound& state : found.states) {
          const auto of = [&](const nn::ModelImpl::Trace& trace) {
            const torch::Tensor x = trace.state[state.block - 1];
            return x.dim() == 3 ? x[x.size(0) - 1][3] : x[3];
          };
          EXPECT_LE((of(after) - of(before)).norm().item<double>(), state.bound);
        }
        const auto change = setting.model->forward(moved, setting.gso)[3] - y;
        EXPECT_LE((change[0] - change[1]).abs().item<double>(), *found.output_bound);
      }
    }
  }
}

// One block without norms, features straight into a dense block: the map is linear, and a node that
// is alone on its graph attains the bound.
TEST(Robustness, OfALinearMapItIsTight) {
  const auto lonely = graph::Graph::from_edges({.num_nodes = 2, .src = {}, .dst = {}});
  Setting setting = make_setting(
      lonely,
      {.num_blocks = 1, .hops = 0, .norm = nn::NormKind::kNone, .state_norm = nn::NormKind::kNone});
  {
    // The encoder must not turn the worst direction: make it an isometry.
    const torch::NoGradGuard no_grad;
    setting.model->named_parameters()["encoder.weight"].copy_(torch::eye(6, 3, torch::kDouble));
    setting.model->blocks()[0]->w_in.copy_(torch::eye(6, torch::kDouble) * 2.0);
  }
  const Robustness found = answer(RobustnessQuestion{.network = *setting.model,
                                                     .x = setting.x,
                                                     .gso = setting.gso,
                                                     .target = 0,
                                                     .nodes = {0},
                                                     .epsilon = 0.25});
  EXPECT_NEAR(found.states[0].bound, 0.5, 1e-12);
  EXPECT_NEAR(found.states[0].found, 0.5, 1e-9);
  const Robustness other = answer(RobustnessQuestion{.network = *setting.model,
                                                     .x = setting.x,
                                                     .gso = setting.gso,
                                                     .target = 0,
                                                     .nodes = {1},
                                                     .epsilon = 0.25});
  EXPECT_EQ(other.states[0].bound, 0.0);
}

TEST(Robustness, AFloatNetworkComesBackAsItWas) {
  Setting setting = make_setting(graph::make_path(5), {.num_blocks = 2, .hops = 2});
  setting.model->to(torch::kFloat);
  const auto before = setting.model->parameters()[0].clone();
  answer(RobustnessQuestion{.network = *setting.model,
                            .x = setting.x.to(torch::kFloat),
                            .gso = setting.gso,
                            .target = 2,
                            .nodes = {1}});
  EXPECT_EQ(setting.model->parameters()[0].scalar_type(), torch::kFloat);
  EXPECT_TRUE(torch::equal(setting.model->parameters()[0], before));
}

}  // namespace
}  // namespace mpssm::analysis
