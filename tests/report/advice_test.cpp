// SPDX-License-Identifier: MIT
// Advice as text and JSON: the numbers are there, under the names of the nodes.
#include "mpssm/report/advice.h"

#include <nlohmann/json.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpssm/engine/executor.h"
#include "mpssm/graph/generators.h"

namespace mpssm::report {
namespace {

using ::testing::HasSubstr;

data::BareGraph small_graph() {
  return {.name = "small", .graph = graph::make_path(5), .node_ids = {"a", "b", "c", "d", "e"}};
}

TEST(Advice, SpeaksOfNodesByTheirNames) {
  const data::BareGraph graph = small_graph();
  const analysis::Advice advice = analysis::advise({.graph = graph.graph,
                                                    .depth = 0.5,
                                                    .rewire = 1,
                                                    .edit = {.remove = {{1, 2}}},
                                                    .tau = 6,
                                                    .source = 0,
                                                    .target = 4},
                                                   engine::SerialExecutor());
  const std::string text = to_text(graph, advice);
  for (const char* words : {"small: hops until 50 % of the limit", "from a to e in 6 hops",
                            "without b - c; with none", "components"}) {
    EXPECT_THAT(text, HasSubstr(words));
  }
  const auto json = nlohmann::json::parse(to_json(graph, advice));
  EXPECT_EQ(json["rewire"]["source"], "a");
  EXPECT_EQ(json["rewire"]["edges"].size(), 1u);
  EXPECT_EQ(json["rewire"]["value"], advice.rewire->value);
  EXPECT_EQ(json["what_if"]["pair"]["after"], 0.0);
  EXPECT_EQ(json["what_if"]["components"]["after"], 2);
  EXPECT_EQ(json["depth"]["steps"].size(), 4u);
}

analysis::Advice about_a_network() {
  analysis::Advice advice;
  advice.edges = {.part = "validation",
                  .loss = 0.5,
                  .edges = 4,
                  .harmful_count = 1,
                  .harmful = {{0, 1, 1.0, 0.25, 0.375}},
                  .useful = {{1, 2, 1.0, -0.5}},
                  .loss_without_harmful = 0.375};
  advice.attribution = {.target = 2,
                        .state = {.block = 1, .size = 2.0, .of_node = {0.0, -0.25, 0.75, 0.5, 0.0}},
                        .prediction = {.output_name = "mine",
                                       .value = 1.5,
                                       .baseline = 0.5,
                                       .steps = 128,
                                       .of_node = {0.0, 0.25, 0.75, 0.0, 0.0},
                                       .gap = 1e-7},
                        .hops = {2, 1, 0, 1, 2}};
  advice.robustness = {.target = 2,
                       .nodes = {1, 3},
                       .epsilon = 0.1,
                       .states = {{1, 2.0, 0.5, 0.25}},
                       .output_bound = 0.75,
                       .output = -1.5,
                       .output_found = 0.125,
                       .of_classes = true};
  return advice;
}

TEST(Advice, AboutANetworkNamesItsMethods) {
  const data::BareGraph graph = small_graph();
  const analysis::Advice advice = about_a_network();
  const std::string text = to_text(graph, advice);
  for (const char* words :
       {"a - b", "0.375", "-0.125", "Shapley values", "Integrated gradients", "no Shapley values",
        "nodes b, d move by up to 0.1", "50", "The predicted class cannot change"}) {
    EXPECT_THAT(text, HasSubstr(words));
  }
  const auto json = nlohmann::json::parse(to_json(graph, advice));
  EXPECT_EQ(json["edges"]["harmful"][0]["edge"], (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(json["edges"]["useful"][0]["loss_without"], nullptr);
  EXPECT_EQ(json["attribution"]["state"]["shares"][0]["node"], "c");
  EXPECT_EQ(json["attribution"]["state"]["shares"].size(), 3u);
  EXPECT_EQ(json["attribution"]["prediction"]["method"], "integrated gradients");
  EXPECT_EQ(json["robustness"]["states"][0]["bound"], 0.5);
  EXPECT_EQ(json["robustness"]["output"]["found"], 0.125);
}

TEST(Advice, AsAPageMarksEdgesAndEscapesNames) {
  data::BareGraph graph = small_graph();
  graph.node_ids[0] = "<a>";
  analysis::Advice advice = about_a_network();
  advice.rewire =
      analysis::answer(analysis::RewireQuestion{.graph = graph.graph, .tau = 4, .count = 2},
                       engine::SerialExecutor());
  Explorer explorer{.gso = graph::make_gso(graph.graph),
                    .node_ids = graph.node_ids,
                    .blocks = {{"W", {1, 1, 1, 1, 1}}}};
  describe_graph(graph.graph, 0.9, explorer);
  mark_advice(advice, explorer);
  EXPECT_EQ(explorer.bridges.size(), 4u);
  EXPECT_EQ(explorer.degree.size(), 5u);
  EXPECT_EQ(explorer.advised.size(), 2u);
  EXPECT_EQ(explorer.harmful.size(), 1u);
  EXPECT_EQ(explorer.target, 2);
  const std::string html = advice_page_html(graph, advice, explorer);
  EXPECT_THAT(html, HasSubstr("&lt;a&gt; - b"));
  EXPECT_THAT(html, ::testing::Not(HasSubstr("<a>")));
  EXPECT_THAT(html, HasSubstr("\"lambda\":0.9"));
}

TEST(Advice, ComesToAnEdit) {
  analysis::Advice advice = about_a_network();
  advice.rounds = {{.u = 0, .v = 3}, {.u = 1, .v = 4}};
  const analysis::GraphEdit edit = analysis::advised_edit(advice, 2.0);
  EXPECT_EQ(edit.add, (std::vector<analysis::GraphEdit::Edge>{{0, 3}, {1, 4}}));
  EXPECT_EQ(edit.remove, (std::vector<analysis::GraphEdit::Edge>{{0, 1}}));
  EXPECT_EQ(edit.weight, 2.0);
  EXPECT_TRUE(edit.saw_validation);
  advice.edges.reset();
  EXPECT_FALSE(analysis::advised_edit(advice, 2.0).saw_validation);
  EXPECT_TRUE(analysis::advised_edit({}, 1.0).empty());
}

TEST(Advice, OfNothingIsNothing) {
  EXPECT_EQ(to_text(small_graph(), {}), "");
  EXPECT_EQ(to_json(small_graph(), {}), R"({"graph":"small"})");
}

}  // namespace
}  // namespace mpssm::report
