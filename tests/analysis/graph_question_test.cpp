// SPDX-License-Identifier: MIT
// Whole answers about a graph: which parts are there, and that W scales them.
#include "mpssm/analysis/graph_question.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpssm/graph/generators.h"
#include "mpssm/ops/runtime.h"

namespace mpssm::analysis {
namespace {

GraphQuestion ask_chain(std::vector<std::int64_t> taus) {
  return GraphQuestion(graph::make_clique_chain(6, 10), graph::GsoKind::kSymNormalized,
                       std::move(taus));
}

TEST(GraphQuestion, ChainOfCliquesHasPairOfItsOwn) {
  const auto chain = graph::make_clique_chain(6, 10);
  EXPECT_EQ(usual_pair("clique-chain:6x10", chain), std::pair(std::int64_t{60}, std::int64_t{64}));
  EXPECT_EQ(usual_pair("mine.csv", chain), std::nullopt);
  EXPECT_EQ(usual_pair("clique-chain:2x4", graph::make_clique_chain(2, 4)), std::nullopt);
}

TEST(GraphQuestion, PairHasLimitBoundsAndDepth) {
  GraphQuestion question = ask_chain({11, 12, 100});
  question.source = 60;
  question.target = 64;
  question.wishes = {.w = -0.5, .bounds = true, .depth = 0.5};
  const GraphAnswer found = answer(question, ops::Threads());
  ASSERT_TRUE(found.pair && found.pair->limit && found.pair->bounds && found.pair->depth);
  EXPECT_EQ(found.pair->hops, 12);
  EXPECT_DOUBLE_EQ(*found.pair->limit, 3.0 / 625.0);
  EXPECT_EQ(found.pair->value[0], 0.0);
  for (std::size_t t = 0; t < found.taus.size(); ++t) {
    const double scale = std::pow(0.5, found.taus[t]);
    EXPECT_DOUBLE_EQ(found.pair->value[t], found.pair->entry[t] * scale);
    EXPECT_DOUBLE_EQ(found.pair->limit_value[t], *found.pair->limit * scale);
  }
  EXPECT_TRUE(found.pair->bounds->hold);
  EXPECT_LE(found.pair->depth->first, found.pair->depth->sure_from);
  EXPECT_FALSE(found.node || found.all_pairs || found.worst || found.least_limit);
}

TEST(GraphQuestion, WhatDoesNotArriveStaysZeroHoweverLargeW) {
  GraphQuestion question = ask_chain({1, 10'000});
  question.source = 60;
  question.target = 64;
  question.wishes.w = 1e9;
  const GraphAnswer found = answer(question, ops::Threads());
  EXPECT_EQ(found.pair->value[0], 0.0);
  EXPECT_TRUE(std::isinf(found.pair->value[1]));
}

TEST(GraphQuestion, StagesAreToldAndEveryPartAskedForIsThere) {
  GraphQuestion question = ask_chain({5});
  question.wishes = {.bounds = true, .depth = 0.1, .worst = 3, .map = true};
  std::vector<std::string> stages;
  const GraphAnswer found = answer(question, ops::Threads(), [&](const std::string& stage) {
    stages.push_back(stage);
    return BlockProgress();
  });
  EXPECT_THAT(stages, ::testing::ElementsAre("extremes over all pairs", "depth of all pairs",
                                             "worst pairs", "their depths"));
  ASSERT_TRUE(found.all_pairs && found.all_pairs->bounds && found.all_pairs->depth && found.worst);
  EXPECT_TRUE(found.all_pairs->bounds->hold);
  EXPECT_EQ(found.worst->pairs.size(), 3);
  EXPECT_TRUE(found.worst->knows_bridges);
  EXPECT_EQ(found.map.size(), 65 * 65);
  EXPECT_EQ(found.worst->depth_share, 0.1);
  EXPECT_EQ(question.steps_of_all_pairs(), question.wishes.max_tau);
}

TEST(GraphQuestion, OtherOperatorHasNoLimitAndSaysWhy) {
  const GraphQuestion question(graph::make_ring(5), graph::GsoKind::kRandomWalk, {1, 2});
  EXPECT_EQ(question.limit, nullptr);
  EXPECT_FALSE(question.why_no_limit.empty());
  const GraphAnswer found = answer(question, ops::Threads());
  EXPECT_FALSE(found.lambda_star || found.least_limit);
  EXPECT_EQ(found.all_pairs->profile.size(), 2);
}

TEST(GraphQuestion, OperatorAloneGetsTheAnswersOfItsGraph) {
  const auto weighted = graph::Graph::from_edges(
      {.num_nodes = 4, .src = {0, 1, 2}, .dst = {1, 2, 3}, .weight = {0.5, 2.0, 3.0}});
  for (const auto& graph : {graph::make_clique_chain(3, 4), weighted}) {
    GraphQuestion of_graph(graph, graph::GsoKind::kSymNormalized, {1, 5, 40});
    GraphQuestion of_operator(of_graph.gso, {1, 5, 40});
    ASSERT_NE(of_operator.limit, nullptr);
    for (GraphQuestion* question : {&of_graph, &of_operator}) {
      question->wishes = {.bounds = true, .depth = 0.3, .worst = 4};
    }
    const GraphAnswer expected = answer(of_graph, ops::Threads());
    const GraphAnswer found = answer(of_operator, ops::Threads());
    EXPECT_NEAR(*found.lambda_star, *expected.lambda_star, 1e-9);
    EXPECT_NEAR(*found.least_limit, *expected.least_limit, 1e-14);
    EXPECT_TRUE(found.all_pairs->bounds->hold);
    EXPECT_EQ(found.all_pairs->depth->found->tau, expected.all_pairs->depth->found->tau);
    for (std::size_t k = 0; k < 4; ++k) {
      EXPECT_EQ(found.worst->pairs[k].target, expected.worst->pairs[k].target);
      EXPECT_EQ(found.worst->pairs[k].bridges, expected.worst->pairs[k].bridges);
      EXPECT_NEAR(found.worst->pairs[k].limit, expected.worst->pairs[k].limit, 1e-14);
    }
  }
}

TEST(GraphQuestion, OperatorThatNoNormalisationMadeHasNoLimit) {
  const auto loop = graph::Graph::from_edges(
      {.num_nodes = 2, .src = {0, 0}, .dst = {0, 1}, .weight = {3.0, 1.0}});
  const auto negative =
      graph::Graph::from_edges({.num_nodes = 2, .src = {0}, .dst = {1}, .weight = {-1.0}});
  const auto arrow = graph::Graph::from_edges({.num_nodes = 2, .src = {0}, .dst = {1}},
                                              graph::Direction::kDirected);
  std::vector<graph::Gso> operators = {graph::make_gso(loop), graph::make_gso(negative),
                                       graph::make_gso(arrow)};
  for (const auto kind : {graph::GsoKind::kRandomWalk, graph::GsoKind::kLaplacian,
                          graph::GsoKind::kAdjacency, graph::GsoKind::kSymNormalizedNoLoops}) {
    operators.push_back(graph::make_gso(graph::make_path(4), {.kind = kind}));
  }
  for (const graph::Gso& gso : operators) {
    const GraphQuestion question(gso, {2});
    EXPECT_EQ(question.limit, nullptr);
    EXPECT_FALSE(question.why_no_limit.empty());
    EXPECT_EQ(question.graph.is_symmetric(), gso.is_symmetric());
    EXPECT_TRUE(answer(question, ops::Threads()).all_pairs);
  }
}

TEST(GraphQuestion, ExtremesCanBeLeftOut) {
  GraphQuestion question = ask_chain({5});
  question.extremes = false;
  EXPECT_FALSE(answer(question, ops::Threads()).all_pairs);
  EXPECT_EQ(question.steps_of_all_pairs(), std::nullopt);
}

TEST(GraphQuestion, TargetHearsWhatSourceSends) {
  GraphQuestion question(graph::make_path(4), graph::GsoKind::kRandomWalk, {2});
  question.wishes.of_node = true;
  question.target = 3;
  const std::vector<double> heard = answer(question, ops::Threads()).of_node;
  question.source = 1;  // of a pair too it is what the target hears
  const GraphAnswer pair = answer(question, ops::Threads());
  EXPECT_EQ(pair.of_node, heard);
  EXPECT_DOUBLE_EQ(pair.pair->value[0], heard[1]);
}

}  // namespace
}  // namespace mpssm::analysis
