// SPDX-License-Identifier: MIT
#include "mpssm/nn/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <torch/torch.h>

#include "mpssm/graph/generators.h"

#include "tests/support/tensors.h"
#include "tests/support/threads.h"

namespace mpssm::nn {
namespace {

using mpssm::testing::close;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(Model, SkipIsALinearMapOfTheLastSteps) {
  torch::manual_seed(4);
  const auto gso = graph::make_gso(graph::make_ring(5));
  ModelOptions options{.in_channels = 2,
                       .hidden_channels = 8,
                       .out_channels = 3,
                       .num_blocks = 1,
                       .mode = Mode::kTemporal,
                       .readout = Readout::kForecast,
                       .skip_steps = 4};
  Model model(options);
  const auto x = torch::randn({6, 7, 5, 2});
  const auto before = model->forward(x, gso);
  const auto weight = torch::randn({3, 8});
  {
    const torch::NoGradGuard no_grad;
    model->named_parameters()["skip.weight"].copy_(weight);
  }
  // [batch, node, last four steps by channel]
  const auto window = x.slice(1, 3).permute({0, 2, 1, 3}).reshape({6, 5, 8});
  EXPECT_TRUE(close(model->forward(x, gso) - before, torch::matmul(window, weight.t()), 1e-5));
  EXPECT_THAT([&] { model->forward(x.slice(1, 4), gso); },
              ThrowsMessage<c10::Error>(HasSubstr("skip_steps=4")));
}

TEST(Model, TakesCategoriesAsNumbersOrOneHot) {
  torch::manual_seed(9);
  const auto gso = graph::make_gso(graph::make_ring(30));
  // Two categories of 3 and 4 values, and two numbers.
  Model model(
      ModelOptions{.in_channels = 9, .vocabulary = {3, 4}, .hidden_channels = 8, .num_blocks = 1});
  EXPECT_TRUE(model->takes_codes());
  const auto codes = torch::stack({torch::randint(3, {30}), torch::randint(5, {30})}, 1);
  const auto numbers = torch::randn({30, 2});
  const auto one_hot =
      torch::cat({torch::one_hot(codes.select(1, 0), 3),
                  torch::one_hot(codes.select(1, 1), 5).slice(1, 0, 4), numbers},  // 4 is unknown
                 1);
  const auto gradient = [&](const torch::Tensor& x) {
    model->zero_grad();
    const auto y = model->forward(x, gso);
    y.square().sum().backward();
    return std::pair(y.detach(), model->encoder()->weight.grad().clone());
  };
  const auto dense = gradient(one_hot);
  const auto coded = gradient(torch::cat({codes, numbers}, 1));
  EXPECT_TRUE(close(coded.first, dense.first, 1e-5));
  EXPECT_TRUE(close(coded.second, dense.second, 1e-5));
  EXPECT_THAT(
      [&] {
        model->forward(torch::ones({30, 5}), gso);
      },
      ThrowsMessage<c10::Error>(HasSubstr("in_channels=9")));
  // Nothing would tell the two forms apart.
  EXPECT_FALSE(Model(ModelOptions{.in_channels = 3, .vocabulary = {1, 1}})->takes_codes());
}

TEST(Model, DropsAtTheInputAndBeforeTheReadoutInTrainingOnly) {
  const auto gso = graph::make_gso(graph::make_ring(12));
  const auto x = torch::randn({12, 2});
  for (const bool at_input : {true, false}) {
    Model model(ModelOptions{.in_channels = 2,
                             .hidden_channels = 16,
                             .num_blocks = 1,
                             .input_dropout = at_input ? 0.5 : 0.0,
                             .readout_dropout = at_input ? 0.0 : 0.5,
                             .readout_layers = 3});
    model->train();
    EXPECT_FALSE(torch::equal(model->forward(x, gso), model->forward(x, gso)));
    model->eval();
    EXPECT_TRUE(torch::equal(model->forward(x, gso), model->forward(x, gso)));
  }
}

// Mean over the nodes, three layers of one width but for the last, GELU between them.
TEST(Model, ReadoutOfConstantWidthIsTheOneOfTheReevaluatedBaselines) {
  const std::vector<graph::Graph> parts = {graph::make_ring(5), graph::make_path(4)};
  const auto gso = graph::make_gso(graph::make_batch(parts));
  Model model(ModelOptions{.in_channels = 2,
                           .hidden_channels = 6,
                           .out_channels = 3,
                           .num_blocks = 1,
                           .readout = Readout::kGraph,
                           .readout_layers = 3,
                           .readout_shape = ReadoutShape::kConstant});
  auto named = model->named_parameters();
  EXPECT_EQ(named["readout_0.weight"].sizes(), (std::vector<std::int64_t>{6, 6}));
  EXPECT_EQ(named["readout_1.weight"].sizes(), (std::vector<std::int64_t>{6, 6}));
  EXPECT_EQ(named["readout_2.weight"].sizes(), (std::vector<std::int64_t>{3, 6}));
  const auto x = torch::randn({9, 2});
  Norm norm = model->final_norm();
  const auto h = norm->forward(model->trace(x, gso).h.back());
  auto y = torch::stack({h.slice(0, 0, 5).mean(0), h.slice(0, 5).mean(0)});
  for (int i = 0; i < 3; ++i) {
    const std::string layer = "readout_" + std::to_string(i);
    if (i > 0) y = torch::gelu(y);
    y = torch::linear(y, named[layer + ".weight"], named[layer + ".bias"]);
  }
  EXPECT_TRUE(close(model->forward(x, gso), y, 1e-5));
}

TEST(Model, NodeEmbeddingTellsNodesApartAndBindsToOneGraph) {
  const auto gso = graph::make_gso(graph::make_ring(6));
  ModelOptions options{.in_channels = 1, .hidden_channels = 8, .num_blocks = 1};
  const auto x = torch::ones({6, 1});
  const auto same = Model(options)->forward(x, gso);
  EXPECT_TRUE(close(same, same[0].expand_as(same), 1e-5));  // nothing tells the nodes apart
  options.num_embedded_nodes = 6;
  Model model(options);
  EXPECT_FALSE(close(model->forward(x, gso), model->forward(x, gso)[0].expand({6, 1}), 1e-3));
  EXPECT_THAT(
      [&] {
        model->forward(torch::ones({5, 1}), graph::make_gso(graph::make_ring(5)));
      },
      ThrowsMessage<c10::Error>(HasSubstr("embeddings of 6 nodes")));
}

TEST(Model, RunsBlocksAgainToTheSameBits) {
  const auto gso = graph::make_gso(graph::make_random_connected(40, 90, 3));
  const auto trained = [&](ModelOptions options, const torch::Tensor& x, bool recompute) {
    options.recompute = recompute;
    torch::manual_seed(11);  // weights and dropout
    Model model(options);
    std::vector<torch::Tensor> result = {x.detach().clone().requires_grad_()};
    for (int step = 0; step < 2; ++step) {
      const auto y = model->forward(result[0], gso);
      (y * y).sum().backward();
      result.push_back(y.detach());
    }
    result[0] = result[0].grad();
    for (const auto& parameter : model->parameters()) result.push_back(parameter.grad());
    result.push_back(torch::rand({1}));  // what comes after has the same random numbers, too
    return result;
  };
  using engine::Precision;
  for (const auto& [kind, precision] : {std::pair{StateKind::kDense, Precision::kFloat32},
                                        {StateKind::kStable, Precision::kFloat32},
                                        {StateKind::kDense, Precision::kBf16},
                                        {StateKind::kStable, Precision::kBf16}}) {
    for (const Mode mode : {Mode::kStatic, Mode::kTemporal}) {
      SCOPED_TRACE(std::string(to_string(kind)) + " " + std::string(to_string(precision)) +
                   (mode == Mode::kStatic ? ", static" : ", series"));
      ModelOptions options{.in_channels = 3,
                           .hidden_channels = 8,
                           .out_channels = 2,
                           .num_blocks = 3,
                           .mode = mode,
                           .dropout = 0.3};
      options.state.kind = kind;
      options.precision = precision;
      const auto x = mode == Mode::kStatic ? torch::randn({40, 3}) : torch::randn({2, 5, 40, 3});
      const auto expected = trained(options, x, false);
      const auto actual = trained(options, x, true);
      ASSERT_EQ(actual.size(), expected.size());
      for (std::size_t i = 0; i < expected.size(); ++i) {
        EXPECT_TRUE(torch::equal(actual[i], expected[i])) << "result " << i;
      }
    }
  }
  EXPECT_THAT([] { Model(ModelOptions{.norm = NormKind::kBatch, .recompute = true}); },
              ThrowsMessage<c10::Error>(HasSubstr("no batch norm")));
}

TEST(Model, NeedsNoGradientOfItsInputToRunBlocksAgain) {
  const auto gso = graph::make_gso(graph::make_ring(6));
  Model model(ModelOptions{.in_channels = 2, .hidden_channels = 4, .recompute = true});
  model->forward(torch::randn({6, 2}), gso).sum().backward();
  for (const auto& parameter : model->parameters()) EXPECT_TRUE(parameter.grad().defined());
  // Frozen parameters stay without.
  for (auto& parameter : model->blocks()[1]->parameters()) parameter.requires_grad_(false);
  model->blocks()[2]->w_in.requires_grad_(false);
  model->zero_grad();
  model->forward(torch::randn({6, 2}), gso).sum().backward();
  EXPECT_FALSE(model->blocks()[1]->w_in.grad().defined());
  EXPECT_FALSE(model->blocks()[2]->w_in.grad().defined());
  EXPECT_TRUE(model->blocks()[0]->w_in.grad().defined());
  const torch::NoGradGuard no_grad;
  EXPECT_FALSE(model->forward(torch::randn({6, 2}), gso).requires_grad());
}

TEST(Model, HasTheShapesItPromises) {
  const std::vector<graph::Graph> parts = {graph::make_path(5), graph::make_ring(7)};
  const auto gso = graph::make_gso(graph::make_batch(parts));
  const auto shape = [&](const ModelOptions& options, const torch::Tensor& x) {
    return Model(options)->forward(x, gso).sizes().vec();
  };
  using Shape = std::vector<std::int64_t>;
  ModelOptions options{.in_channels = 3, .hidden_channels = 8, .out_channels = 2, .num_blocks = 2};
  EXPECT_EQ(shape(options, torch::randn({12, 3})), Shape({12, 2}));
  EXPECT_EQ(shape(options, torch::randn({4, 12, 3})), Shape({4, 12, 2}));
  options.readout = Readout::kGraph;
  for (const auto pooling : {engine::Pooling::kSum, engine::Pooling::kMean, engine::Pooling::kMax,
                             engine::Pooling::kSumMaxMean}) {
    options.pooling = pooling;
    options.readout_layers = 2;
    EXPECT_EQ(shape(options, torch::randn({12, 3})), Shape({2, 2}));
  }
  options.mode = Mode::kTemporal;
  options.readout = Readout::kNode;
  EXPECT_EQ(shape(options, torch::randn({4, 6, 12, 3})), Shape({4, 6, 12, 2}));
  options.readout = Readout::kForecast;
  EXPECT_EQ(shape(options, torch::randn({4, 6, 12, 3})), Shape({4, 12, 2}));
  EXPECT_EQ(shape(options, torch::randn({6, 12, 3})), Shape({12, 2}));
  options.residual = false;
  EXPECT_EQ(shape(options, torch::randn({6, 12, 3})), Shape({12, 2}));
}

// T10, with every option that could break it.
TEST(Model, IsEquivariantToNodePermutation) {
  torch::manual_seed(1);
  const auto graph = graph::make_random_connected(14, 30, 2);
  const auto order = torch::randperm(14);
  graph::EdgeList renamed{.num_nodes = 14};
  for (std::int64_t i = 0; i < 14; ++i) {
    for (std::int64_t e = graph.row_ptr()[i]; e < graph.row_ptr()[i + 1]; ++e) {
      renamed.src.push_back(order[graph.col()[e]].item<std::int64_t>());
      renamed.dst.push_back(order[i].item<std::int64_t>());
    }
  }
  const auto gso = graph::make_gso(graph);
  const auto gso_renamed = graph::make_gso(graph::Graph::from_edges(renamed));
  const auto x = torch::randn({14, 3}, torch::kDouble);
  const auto x_renamed = torch::empty_like(x).index_copy(0, order, x);
  for (const StateKind kind : {StateKind::kDense, StateKind::kStable}) {
    for (const NormKind norm : {NormKind::kLayer, NormKind::kBatch, NormKind::kNone}) {
      Model model(ModelOptions{.in_channels = 3,
                               .hidden_channels = 16,
                               .out_channels = 2,
                               .num_blocks = 3,
                               .state = {.kind = kind},
                               .norm = norm,
                               .state_norm = norm,
                               .dropout = 0.3});
      model->to(torch::kDouble);
      model->eval();
      const auto y = model->forward(x, gso);
      EXPECT_TRUE(close(model->forward(x_renamed, gso_renamed),
                        torch::empty_like(y).index_copy(0, order, y), 1e-10));
    }
  }
}

TEST(Model, AForecastIsTheLastStepOfAllSteps) {
  torch::manual_seed(2);
  const auto gso = graph::make_gso(graph::make_ring(9));
  ModelOptions options{.in_channels = 2,
                       .hidden_channels = 8,
                       .out_channels = 3,
                       .num_blocks = 3,
                       .mode = Mode::kTemporal,
                       .readout = Readout::kForecast};
  Model forecast(options);
  options.readout = Readout::kNode;
  Model every_step(options);
  const torch::NoGradGuard no_grad;
  const auto parameters = forecast->named_parameters();
  for (auto& item : every_step->named_parameters()) item.value().copy_(parameters[item.key()]);
  const auto x = torch::randn({5, 9, 2});
  EXPECT_TRUE(close(forecast->forward(x, gso), every_step->forward(x, gso)[4], 1e-5));
}

TEST(Model, BlocksOfAStackReachAsFarAsTheirHopsTogether) {
  torch::manual_seed(3);
  const auto gso = graph::make_gso(graph::make_path(30));
  Model model(ModelOptions{.in_channels = 1, .hidden_channels = 8, .num_blocks = 3, .hops = 4});
  model->to(torch::kDouble);
  auto x = torch::randn({30, 1}, torch::kDouble).requires_grad_();
  model->forward(x, gso)[0].sum().backward();
  const auto reach = x.grad().abs().flatten();
  EXPECT_GT(reach[12].item<double>(), 0.0);
  EXPECT_EQ(reach.slice(0, 13).max().item<double>(), 0.0);
}

TEST(Model, LearnsADistanceThatOneHopCannotSee) {
  // Is the marked node within six hops? Paths of 20 nodes, the mark at another place in each.
  std::vector<graph::Graph> parts(16, graph::make_path(20));
  const auto gso = graph::make_gso(graph::make_batch(parts));
  auto x = torch::zeros({320, 1});
  auto y = torch::zeros({320, 1});
  for (std::int64_t g = 0; g < 16; ++g) {
    x[20 * g + g][0] = 1.0;
    for (std::int64_t i = 0; i < 20; ++i) y[20 * g + i][0] = std::abs(i - g) <= 6 ? 1.0 : 0.0;
  }
  // Every third start has not found it after so few steps, and which ones turns on the last bits.
  double best = 1.0;
  for (const std::uint64_t seed : {1, 2, 3}) {
    torch::manual_seed(seed);
    Model model(ModelOptions{.in_channels = 1, .hidden_channels = 16, .num_blocks = 2, .hops = 8});
    torch::optim::Adam adam(model->parameters(), torch::optim::AdamOptions(1e-2));
    double first = 0.0;
    for (int step = 0; step < 150; ++step) {
      adam.zero_grad();
      const auto loss = torch::binary_cross_entropy_with_logits(model->forward(x, gso), y);
      loss.backward();
      adam.step();
      if (step == 0) first = loss.item<double>();
      best = std::min(best, loss.item<double>() / first);
    }
    EXPECT_GT(first, 0.5);
  }
  EXPECT_LT(best, 0.1);
}

TEST(Model, StartsAndTrainsToTheSameBitsOnAnyNumberOfThreads) {
  const auto gso = graph::make_gso(graph::make_board(40, 40));
  for (const StateKind kind : {StateKind::kDense, StateKind::kDiagonal, StateKind::kStable}) {
    for (const NormKind norm : {NormKind::kLayer, NormKind::kBatch}) {
      for (const Activation activation : {Activation::kGelu, Activation::kTanh}) {
        SCOPED_TRACE(std::string(to_string(kind)) + ", " + std::string(to_string(norm)) + ", " +
                     std::string(to_string(activation)));
        mpssm::testing::expect_same_bits([&] {
          Model model(ModelOptions{.in_channels = 4,
                                   .hidden_channels = 64,
                                   .num_blocks = 2,
                                   .state = {.kind = kind},
                                   .activation = activation,
                                   .norm = norm,
                                   .dropout = 0.2});
          std::vector<torch::Tensor> results;
          for (const auto& parameter : model->parameters()) results.push_back(parameter.clone());
          torch::optim::AdamW optimiser(model->parameters(), torch::optim::AdamWOptions(1e-3));
          const auto x = torch::randn({1600, 4});
          for (int step = 0; step < 3; ++step) {
            optimiser.zero_grad();
            // Torch's sum over everything is not for any number of threads: row by row, then all.
            model->forward(x, gso).square().sum(-1).cumsum(0)[-1].backward();
            optimiser.step();
          }
          for (const auto& parameter : model->parameters()) results.push_back(parameter.detach());
          return results;
        });
      }
    }
  }
}

TEST(Model, CountsItsParameters) {
  const ModelOptions options{.in_channels = 3,
                             .hidden_channels = 8,
                             .out_channels = 2,
                             .num_blocks = 2,
                             .state = {.kind = StateKind::kDense}};
  // Encoder, then per block: B, W, MLP, two norms; final norm; readout.
  const std::int64_t expected =
      (3 * 8 + 8) + 2 * (64 + 64 + 2 * (64 + 8) + 2 * 16) + 16 + (8 * 2 + 2);
  EXPECT_EQ(num_parameters(*Model(options)), expected);
}

TEST(Model, MemoryEstimateGrowsWithWhatItShould) {
  const auto gso = graph::make_gso(graph::make_board(50, 50));
  ModelOptions options{.hidden_channels = 64, .num_blocks = 4, .hops = 8};
  const auto estimate = [&](std::int64_t batch, bool training) {
    return memory_estimate(options, gso, batch, 1, training);
  };
  EXPECT_GT(estimate(1, true), 2 * estimate(1, false));
  EXPECT_GT(estimate(4, true), 2 * estimate(1, true));
  const auto shallow = estimate(1, true);
  options.hops = 512;
  EXPECT_EQ(estimate(1, true), shallow);  // diagonal: hops are free
  options.state.kind = StateKind::kDense;
  EXPECT_GT(estimate(1, true), shallow);
}

TEST(Model, SaysWhatIsWrong) {
  const auto gso = graph::make_gso(graph::make_ring(9));
  Model model(ModelOptions{.in_channels = 3});
  EXPECT_THAT(
      [&] {
        model->forward(torch::randn({9, 4}), gso);
      },
      ThrowsMessage<c10::Error>(
          HasSubstr("Model: expected x of shape [..., N=9, in_channels=3], got [9, 4]")));
  EXPECT_THAT([] { Model(ModelOptions{.num_blocks = 0}); },
              ThrowsMessage<c10::Error>(HasSubstr("Model: expected num_blocks >= 1, got 0")));
  EXPECT_THAT([] { Model(ModelOptions{.out_channels = 0}); },
              ThrowsMessage<c10::Error>(HasSubstr("channels >= 1")));
  EXPECT_THAT([] { Model(ModelOptions{.readout_layers = 0}); },
              ThrowsMessage<c10::Error>(HasSubstr("readout_layers >= 1")));
  EXPECT_THAT([] { Model(ModelOptions{.readout = Readout::kForecast}); },
              ThrowsMessage<c10::Error>(HasSubstr("readout forecast needs temporal mode")));
  EXPECT_THAT([] { Model(ModelOptions{.mode = Mode::kTemporal, .readout = Readout::kGraph}); },
              ThrowsMessage<c10::Error>(HasSubstr("readout graph needs static mode")));
}

}  // namespace
}  // namespace mpssm::nn
