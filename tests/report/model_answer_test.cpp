// SPDX-License-Identifier: MIT
// Answers about a trained network, made by hand: what people and programs read of them.
#include "mpssm/report/model_answer.h"

#include <nlohmann/json.hpp>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mpssm::report {
namespace {

using analysis::ModelAnswer;
using ::testing::HasSubstr;
using ::testing::Not;

data::BareGraph edge_between_two() {
  return {.name = "two",
          .graph = graph::Graph::from_edges({.num_nodes = 2, .src = {0}, .dst = {1}},
                                            graph::Direction::kUndirected)};
}

ModelAnswer about_blocks() {
  return {.run = "runs/mine",
          .dataset = "two",
          .kind = "mpssm",
          .taus = {1, 2},
          .nodes = 2,
          .blocks = {{.hops = 3,
                      .radius = 0.5,
                      .norm_at_hops = 0.125,
                      .mean_hop = 0.75,
                      .forgets_after = 7,
                      .norms = {0.5, 0.25}}}};
}

analysis::Dependence dependence(const std::string& run, double near) {
  analysis::Dependence found{
      .run = run, .share_of_hop = {near, 1.0 - near}, .mean_hop = 1.0 - near};
  found.predictions.push_back({.target = 1,
                               .influence = {.of_node = {1.0 - near, near},
                                             .hops = {1, 0},
                                             .of_hop = {near, 1.0 - near},
                                             .nodes_at = {1, 1},
                                             .mean_hop = 1.0 - near},
                               .top = {1, 0}});
  return found;
}

TEST(ModelAnswer, BlocksInWords) {
  ModelAnswer answer = about_blocks();
  const std::string blocks =
      "runs/mine: mpssm on two, 2 nodes, 1 edge\n"
      "\n"
      "block  radius of W  ||W^3||  mean hop  1 % after\n"
      "    1          0.5    0.125      0.75  7 hops\n";
  EXPECT_EQ(to_text(edge_between_two(), answer), blocks);
  answer.asked_for_taus = true;
  EXPECT_EQ(to_text(edge_between_two(), answer),
            blocks + "\ntau  ||W1^tau||\n  1         0.5\n  2        0.25\n");
}

TEST(ModelAnswer, NetworkWithoutRecurrenceSaysSo) {
  ModelAnswer answer = about_blocks();
  answer.blocks.clear();
  EXPECT_THAT(to_text(edge_between_two(), answer), HasSubstr("no linear recurrence"));
  EXPECT_EQ(nlohmann::json::parse(to_json(edge_between_two(), answer))["blocks"],
            nlohmann::json::array());
}

TEST(ModelAnswer, RunsSideBySide) {
  ModelAnswer answer = about_blocks();
  answer.target = 1;
  answer.runs = {dependence("runs/mine", 0.75), dependence("runs/gcn", 0.25)};
  const std::string words = to_text(edge_between_two(), answer);
  EXPECT_THAT(words, HasSubstr("prediction of node  mean hop, runs/mine  mean hop, runs/gcn\n"));
  EXPECT_THAT(words,
              HasSubstr("hop  nodes  % of influence, runs/mine  % of influence, runs/gcn\n"
                        "  0      1                         75                        25\n"));
  EXPECT_THAT(words, HasSubstr("prediction of node 1 depends most on:\n"));
  const auto json = nlohmann::json::parse(to_json(edge_between_two(), answer));
  EXPECT_EQ(json["predictions"]["run"], "runs/mine");
  EXPECT_EQ(json["compare"]["share_of_hop"], nlohmann::json::parse("[0.25, 0.75]"));
  EXPECT_EQ(json["predictions"]["each"][0]["top"][1]["hops"], 1);
}

TEST(ModelAnswer, PredictionForWholeGraphHasNoDistance) {
  ModelAnswer answer = about_blocks();
  answer.whole = {.of_node = {0.25, 0.75}, .top = {1, 0}};
  const std::string words = to_text(edge_between_two(), answer);
  EXPECT_THAT(words, HasSubstr("the prediction for this graph depends most on:\n"
                               "node  influence  % of all\n"
                               "   1       0.75        75\n"));
  EXPECT_THAT(words, Not(HasSubstr("hop  nodes")));
  EXPECT_EQ(usual_picture(answer), PictureKind::kGraph);
  EXPECT_THAT(to_svg(edge_between_two(), answer, PictureKind::kGraph),
              HasSubstr("influence on the prediction"));
}

TEST(ModelAnswer, CurvesAreOfPredictionsIfThereAreAny) {
  ModelAnswer answer = about_blocks();
  EXPECT_EQ(usual_picture(answer), PictureKind::kCurve);
  EXPECT_THAT(to_svg(edge_between_two(), answer, PictureKind::kCurve), HasSubstr("||W^tau||"));
  answer.runs = {dependence("runs/mine", 0.75)};
  EXPECT_THAT(to_svg(edge_between_two(), answer, PictureKind::kCurve),
              HasSubstr("share of the influence"));
}

}  // namespace
}  // namespace mpssm::report
