// SPDX-License-Identifier: MIT
// A model shared by its channels gives what the model gives, to the bit.
#include "mpssm/nn/channel_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <torch/torch.h>

#include "mpssm/engine/row_place.h"
#include "mpssm/graph/generators.h"
#include "mpssm/graph/gso.h"
#include "mpssm/ops/generator.h"

#include "tests/ranks/threads_as_ranks.h"

namespace mpssm::nn {
namespace {

using mpssm::testing::as_ranks;

ModelOptions small_options() {
  return {.in_channels = 3,
          .hidden_channels = 10,
          .out_channels = 2,
          .num_blocks = 2,
          .hops = 3,
          .dropout = 0.3,
          .readout_layers = 2};
}

/// Draws the same weights at each call; not by several threads at once.
std::shared_ptr<ModelImpl> make_model(const ModelOptions& options) {
  const ops::DefaultGeneratorScope numbers(ops::make_generator(5));
  return std::make_shared<ModelImpl>(options);
}

/// What training needs of one call: the output and all gradients, one behind the other.
std::vector<torch::Tensor> trained(GraphModule& network, ModelImpl& model, const torch::Tensor& x,
                                   const graph::Gso& gso) {
  const ops::GeneratorScope dropped(ops::make_generator(11));
  model.train();
  const torch::Tensor y = network.forward(x, gso);
  // Every node counts differently.
  const torch::Tensor weight = torch::linspace(0.1, 1.0, y.numel()).view(y.sizes());
  (y.square() * weight).sum().backward();
  if (auto* shared = dynamic_cast<ChannelRanks*>(&network)) shared->collect_gradients();
  std::vector<torch::Tensor> result = {y.detach()};
  for (const auto& item : model.named_parameters()) result.push_back(item.value().grad());
  // The next call has to draw on where this one stopped.
  result.push_back(ops::current_generator().get_state());
  return result;
}

struct Case {
  std::string name;
  ModelOptions options;
  graph::Graph graph;
};

std::vector<Case> cases() {
  // Parts of sums over nodes: 1, 5 and 16, the last ones of more than 1024 nodes.
  std::vector<Case> result = {{"few nodes", small_options(), graph::make_ring(30)},
                              {"grid", small_options(), graph::make_grid(70, 65)},
                              {"many nodes", small_options(), graph::make_grid(150, 140)}};
  Case of_bf16 = result[1];
  of_bf16.name = "bfloat16";
  of_bf16.options.precision = engine::Precision::kBf16;
  result.push_back(of_bf16);
  Case plain = result[1];
  plain.name = "plain diagonal, no norms";
  plain.options.state.kind = StateKind::kDiagonal;
  plain.options.norm = plain.options.state_norm = NormKind::kNone;
  plain.options.residual = false;
  result.push_back(plain);
  return result;
}

TEST(ChannelRanks, GiveTheBitsOfTheModelInTraining) {
  MPSSM_NEEDS_GLOO();
  for (const Case& c : cases()) {
    const graph::Gso gso = graph::make_gso(c.graph);
    const auto model = make_model(c.options);
    const torch::Tensor x =
        torch::linspace(-1.0, 1.0, 3 * gso.num_nodes()).sin().view({gso.num_nodes(), 3});
    const auto expected = trained(*model, *model, x, gso);
    for (const std::int64_t count : {1, 2, 3, 4}) {
      std::vector<std::shared_ptr<ModelImpl>> models;
      for (std::int64_t i = 0; i < count; ++i) models.push_back(make_model(c.options));
      as_ranks(count, [&](ranks::Communicator& all) {
        ChannelRanks shared(models[all.rank()], all);
        for (const int time : {1, 2}) {
          for (const torch::Tensor& p : models[all.rank()]->parameters()) p.mutable_grad().reset();
          const auto found = trained(shared, *models[all.rank()], x, gso);
          for (std::size_t i = 0; i < expected.size(); ++i) {
            EXPECT_TRUE(torch::equal(found[i], expected[i]))
                << c.name << ", " << count << " ranks, time " << time << ", tensor " << i;
          }
        }
      });
    }
  }
}

TEST(ChannelRanks, GiveTheBitsOfTheModelInEvaluation) {
  MPSSM_NEEDS_GLOO();
  const graph::Gso gso = graph::make_gso(graph::make_grid(70, 65));
  const torch::Tensor x = torch::ones({gso.num_nodes(), 3});
  const auto model = make_model(small_options());
  model->eval();
  const torch::Tensor expected = model->forward(x, gso).detach();
  std::vector<std::shared_ptr<ModelImpl>> models = {make_model(small_options()),
                                                    make_model(small_options())};
  as_ranks(2, [&](ranks::Communicator& all) {
    const torch::NoGradGuard no_grad;
    models[all.rank()]->eval();
    EXPECT_TRUE(torch::equal(ChannelRanks(models[all.rank()], all).forward(x, gso), expected));
  });
}

TEST(ChannelRanks, SendAsMuchForManyHopsAsForFew) {
  MPSSM_NEEDS_GLOO();
  const graph::Gso gso = graph::make_gso(graph::make_grid(70, 65));
  const std::int64_t nodes = gso.num_nodes();
  const torch::Tensor x = torch::ones({nodes, 3});
  for (const std::int64_t hops : {4, 256}) {
    ModelOptions options = small_options();
    options.hops = hops;
    options.plan = engine::Plan::kDiagonal;
    std::vector<std::shared_ptr<ModelImpl>> models;
    constexpr std::int64_t kRanks = 4;
    for (std::int64_t i = 0; i < kRanks; ++i) models.push_back(make_model(options));
    as_ranks(kRanks, [&](ranks::Communicator& all) {
      ModelImpl& model = *models[all.rank()];
      ChannelRanks shared(models[all.rank()], all);
      const torch::Tensor y = shared.forward(x, gso);
      y.sum().backward();
      // Nodes and channels of this rank; parts of 1024 nodes, pairs of channels.
      const std::int64_t first = all.rank() * 5 / kRanks * 1024;
      const std::int64_t own = std::min(nodes, (all.rank() + 1) * 5 / kRanks * 1024) - first;
      const std::int64_t channels = 2 * ((all.rank() + 1) * 5 / kRanks - all.rank() * 5 / kRanks);
      // Forward and backward, a block sends twice: what others need of these nodes, and of these
      // channels.
      const std::int64_t twice =
          own * (options.hidden_channels - channels) + (nodes - own) * channels;
      const std::int64_t output = own * options.out_channels * (kRanks - 1);
      EXPECT_EQ(all.bytes_sent(), 4 * (2 * options.num_blocks * twice + output));
      EXPECT_EQ(all.num_exchanges(), 2 * options.num_blocks * 2 + 1);
      // Gradients: parts summed up, and those of the channels to all.
      const std::int64_t before = all.bytes_sent();
      shared.collect_gradients();
      std::int64_t of_nodes = num_parameters(model) - options.num_blocks * options.hidden_channels;
      const ranks::Shares sums{of_nodes, kRanks};
      const std::int64_t parts = ranks::Shares{5, kRanks}.size(all.rank());
      EXPECT_EQ(all.bytes_sent() - before,
                4 * (parts * (of_nodes - sums.size(all.rank())) +
                     (kRanks - 1) * (sums.size(all.rank()) + options.num_blocks * channels)));
    });
  }
}

TEST(ChannelRanks, SayWhatTheyCannotShare) {
  ModelOptions options = small_options();
  EXPECT_EQ(why_not_by_channels(options, 4), "");
  EXPECT_EQ(why_not_by_channels(options, 6),
            "10 channels are 5 pairs, less than one for each rank");
  options.norm = NormKind::kBatch;
  EXPECT_EQ(why_not_by_channels(options, 2), "batch norm looks at all nodes at once");
  options.state.kind = StateKind::kDense;
  EXPECT_EQ(why_not_by_channels(options, 2), "a dense W mixes the channels of all ranks");
}

}  // namespace
}  // namespace mpssm::nn
