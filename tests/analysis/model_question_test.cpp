// SPDX-License-Identifier: MIT
// Whole answers about a network, against the numbers they are made of.
#include "mpssm/analysis/model_question.h"

#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include <torch/torch.h>

#include "mpssm/analysis/influence.h"
#include "mpssm/graph/generators.h"
#include "mpssm/nn/model.h"

namespace mpssm::analysis {
namespace {

ModelQuestion ask_about(nn::GraphModule& network, const graph::Graph& graph) {
  return {.run = "mine",
          .network = network,
          .x = torch::randn({graph.num_nodes(), 3}),
          .gso = graph::make_gso(graph),
          .graph = graph,
          .taus = {0, 1, 2}};
}

TEST(ModelQuestion, PairInsideBlockAndEndToEnd) {
  nn::Model model(nn::ModelOptions{
      .in_channels = 3, .hidden_channels = 8, .out_channels = 2, .num_blocks = 2, .hops = 3});
  ModelQuestion question = ask_about(*model, graph::make_path(5));
  EXPECT_EQ(num_blocks(question.network), 2);
  question.source = 2;
  question.target = 1;
  question.targets = {1};
  question.block = 2;
  const ModelAnswer found = answer(question);
  ASSERT_EQ(found.blocks.size(), 2);
  EXPECT_EQ(found.blocks[1].hops, 3);
  EXPECT_DOUBLE_EQ(found.blocks[1].norms[0], 1.0);
  ASSERT_TRUE(found.pair && found.pair->limit);
  EXPECT_EQ(found.pair->end_to_end.outputs, 2);
  EXPECT_EQ(found.pair->end_to_end.inputs, 3);
  EXPECT_EQ(found.pair->value[0], 0.0);
  EXPECT_GT(found.pair->value[1], 0.0);
  EXPECT_FALSE(found.pair->lambda_star);  // not asked for
  // The pair's Jacobian is part of what the prediction depends on.
  const Prediction& prediction = found.runs.at(0).predictions.at(0);
  EXPECT_NEAR(prediction.influence.of_node[2], found.pair->end_to_end.l1, 1e-5);
}

TEST(ModelQuestion, SharesOfHopsSumToOneForEachRun) {
  nn::Model model(nn::ModelOptions{.in_channels = 3, .hidden_channels = 8, .num_blocks = 1});
  const auto graph = graph::make_ring(9);
  ModelQuestion question = ask_about(*model, graph);
  const ModelQuestion other = ask_about(*model, graph);
  question.targets = {0, 4, 7};
  question.compare = &other;
  question.top = 2;
  const ModelAnswer found = answer(question);
  ASSERT_EQ(found.runs.size(), 2);
  for (const Dependence& run : found.runs) {
    ASSERT_EQ(run.predictions.size(), 3);
    EXPECT_NEAR(std::reduce(run.share_of_hop.begin(), run.share_of_hop.end()), 1.0, 1e-12);
  }
  EXPECT_EQ(found.runs[0].predictions[2].top,
            most_influential(found.runs[0].predictions[2].influence.of_node, 2));
  EXPECT_FALSE(found.predicts_graphs());
}

TEST(ModelQuestion, NetworkForWholeGraphs) {
  nn::Model model(nn::ModelOptions{
      .in_channels = 3, .hidden_channels = 8, .num_blocks = 1, .readout = nn::Readout::kGraph});
  ModelQuestion question = ask_about(*model, graph::make_star(6));
  question.predicts_graphs = true;
  question.top = 4;
  const ModelAnswer found = answer(question);
  ASSERT_TRUE(found.predicts_graphs());
  EXPECT_EQ(found.whole->of_node.size(), 6);
  EXPECT_EQ(found.whole->top.size(), 4);
  EXPECT_TRUE(found.runs.empty());
}

}  // namespace
}  // namespace mpssm::analysis
