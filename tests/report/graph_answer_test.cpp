// SPDX-License-Identifier: MIT
// Answers about a graph, made by hand: what people and programs read of them.
#include "mpssm/report/graph_answer.h"

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mpssm::report {
namespace {

using analysis::GraphAnswer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

data::BareGraph path_of_three() {
  return {.name = "three",
          .graph = graph::Graph::from_edges({.num_nodes = 3, .src = {0, 1}, .dst = {1, 2}},
                                            graph::Direction::kUndirected),
          .node_ids = {"a", "b", "c"}};
}

GraphAnswer asked(std::int64_t source, std::int64_t target) {
  return {.taus = {1, 2},
          .gso = "sym_normalized",
          .source = source,
          .target = target,
          .nodes = 3,
          .edges = 2,
          .components = 1};
}

GraphAnswer about_pair() {
  GraphAnswer answer = asked(0, 2);
  answer.lambda_star = 0.5;
  answer.pair = {.hops = 2,
                 .entry = {0.0, 0.125},
                 .value = {0.0, 0.125},
                 .limit = 0.25,
                 .limit_value = {0.25, 0.25}};
  return answer;
}

TEST(GraphAnswer, PairInWords) {
  EXPECT_EQ(to_text(path_of_three(), about_pair()),
            "three: 3 nodes, 2 edges, connected\n"
            "lambda* 0.5000000: what is not yet settled shrinks by this factor per hop\n"
            "from node a to node c: 2 hops\n"
            "limit 0.25\n"
            "\n"
            "tau  S(tau)  % of limit\n"
            "  1       0           0\n"
            "  2   0.125          50\n");
}

TEST(GraphAnswer, PairInJson) {
  EXPECT_EQ(to_json(path_of_three(), about_pair()),
            R"({"graph":"three","nodes":3,"edges":2,"components":1,"source":"a","target":"c",)"
            R"("w":1.0,"gso":"sym_normalized","limit":0.25,"lambda_star":0.5,)"
            R"("profile":[{"tau":1,"value":0.0},{"tau":2,"value":0.125}],"bounds":null,"hops":2})");
}

TEST(GraphAnswer, BoundsThatFailAreSaid) {
  GraphAnswer answer = about_pair();
  answer.pair->bounds = {.lower = {0.0, 0.2}, .upper = {0.5, 0.3}, .hold = false};
  const std::string words = to_text(path_of_three(), answer);
  EXPECT_THAT(words, HasSubstr("at least  at most\n"));
  EXPECT_THAT(words, HasSubstr("the bounds do NOT hold: please report this\n"));
  const auto bounds = nlohmann::json::parse(to_json(path_of_three(), answer))["bounds"];
  EXPECT_EQ(bounds["holds"], false);
  EXPECT_EQ(bounds["at"][1]["upper"], 0.3);
}

TEST(GraphAnswer, DepthOfPair) {
  GraphAnswer answer = about_pair();
  answer.pair->depth = {.share = 0.5, .max_tau = 9, .first = 1, .sure_from = 4};
  EXPECT_THAT(
      to_text(path_of_three(), answer),
      HasSubstr("\n50 % of the limit: first after 1 hop; surely from 4 hops on, by lambda*"));
  answer.pair->depth = {.share = 0.5, .max_tau = 9};
  EXPECT_THAT(to_text(path_of_three(), answer), HasSubstr("limit: not within 9 hops\n"));
  const auto depth = nlohmann::json::parse(to_json(path_of_three(), answer))["depth"];
  EXPECT_TRUE(depth["tau"].is_null());
  answer.pair->limit = 0.0;
  EXPECT_THAT(to_text(path_of_three(), answer), HasSubstr("no depth is enough"));
}

TEST(GraphAnswer, WhatNodeHearsIsNotWhatItSends) {
  GraphAnswer answer = asked(-1, 1);
  answer.node = {
      .profile = {{.tau = 1, .nodes = 3, .largest = 0.4, .smallest = 0.3, .total = 1.0}}};
  EXPECT_THAT(to_text(path_of_three(), answer), HasSubstr("what reaches node b\n\ntau  nodes"));
  std::swap(answer.source, answer.target);
  EXPECT_THAT(to_text(path_of_three(), answer), HasSubstr("what node b sends\n\ntau  nodes"));
}

TEST(GraphAnswer, WorstPairsNameTheirBridges) {
  GraphAnswer answer = asked(-1, -1);
  answer.worst = {.tau = 2,
                  .order = analysis::Order::kShare,
                  .pairs = {{.source = 0,
                             .target = 2,
                             .hops = 2,
                             .value = 0.1,
                             .limit = 0.2,
                             .share = 0.5,
                             .bridges = {{.a = 0, .b = 1}, {.a = 1, .b = 2}}}},
                  .knows_limit = true,
                  .knows_bridges = true};
  EXPECT_THAT(to_text(path_of_three(), answer),
              HasSubstr("worst pairs at tau 2, by share of the limit:\n"
                        "source  target  hops  S(2)  limit  % of limit  bridges between them\n"
                        "a       c          2   0.1    0.2          50  a-b, b-c\n"));
  const auto json = nlohmann::json::parse(to_json(path_of_three(), answer));
  EXPECT_EQ(json["worst"][0]["bridges"], nlohmann::json::parse(R"([["a","b"],["b","c"]])"));
  EXPECT_FALSE(json["worst"][0].contains("depth"));  // not asked for
}

TEST(GraphAnswer, NumbersBeyondDoubleAreNullInJson) {
  GraphAnswer answer = about_pair();
  answer.pair->value[1] = 1e308 * 10.0;
  EXPECT_THAT(to_json(path_of_three(), answer), HasSubstr(R"({"tau":2,"value":null})"));
}

TEST(GraphAnswer, PictureFitsTheQuestion) {
  EXPECT_EQ(usual_picture(0, 2), PictureKind::kCurve);
  EXPECT_EQ(usual_picture(0, -1), PictureKind::kGraph);
  EXPECT_EQ(usual_picture(-1, 2), PictureKind::kGraph);
  EXPECT_EQ(usual_picture(-1, -1), PictureKind::kMap);
}

TEST(GraphAnswer, EveryPictureIsDrawn) {
  GraphAnswer answer = about_pair();
  answer.map = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  answer.of_node = {0.1, 0.2, 0.3};
  const data::BareGraph graph = path_of_three();
  EXPECT_THAT(to_svg(graph, answer, PictureKind::kCurve), HasSubstr("three: from a to c"));
  EXPECT_THAT(to_svg(graph, answer, PictureKind::kMap), HasSubstr("three: S after 2 hops"));
  EXPECT_THAT(to_svg(graph, answer, PictureKind::kGraph), HasSubstr("what c hears in 2 hops"));
  EXPECT_THAT(to_svg(graph, answer, PictureKind::kCurve), Not(HasSubstr("no way")));
  answer.pair->hops = -1;
  EXPECT_THAT(to_svg(graph, answer, PictureKind::kCurve), HasSubstr("no way, S is 0"));
}

TEST(GraphAnswer, OnlyCostsWorthSayingAreSaid) {
  EXPECT_THAT(cost_notes(100, 50, 1 << 20), IsEmpty());
  EXPECT_THAT(cost_notes(5000, {}, 1 << 20), IsEmpty());
  EXPECT_THAT(cost_notes(5000, 50, 3 << 20),
              ElementsAre("all pairs of 5000 nodes, up to 50 steps, in blocks: 3 MiB beside the "
                          "graph"));
  EXPECT_THAT(cost_notes(1 << 20, {}, 0),
              ElementsAre(StartsWith("two vectors of 1048576 nodes: 16 MiB")));
}

}  // namespace
}  // namespace mpssm::report
