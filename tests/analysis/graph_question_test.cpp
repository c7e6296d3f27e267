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
  const GraphAnswer found = answer(question);
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
  const GraphAnswer found = answer(question);
  EXPECT_EQ(found.pair->value[0], 0.0);
  EXPECT_TRUE(std::isinf(found.pair->value[1]));
}

TEST(GraphQuestion, StagesAreToldAndEveryPartAskedForIsThere) {
  GraphQuestion question = ask_chain({5});
  question.wishes = {.bounds = true, .depth = 0.1, .worst = 3, .map = true};
  std::vector<std::string> stages;
  const GraphAnswer found = answer(question, [&](const std::string& stage) {
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
  const GraphAnswer found = answer(question);
  EXPECT_FALSE(found.lambda_star || found.least_limit);
  EXPECT_EQ(found.all_pairs->profile.size(), 2);
}

TEST(GraphQuestion, ExtremesCanBeLeftOut) {
  GraphQuestion question = ask_chain({5});
  question.extremes = false;
  EXPECT_FALSE(answer(question).all_pairs);
  EXPECT_EQ(question.steps_of_all_pairs(), std::nullopt);
}

TEST(GraphQuestion, TargetHearsWhatSourceSends) {
  GraphQuestion question(graph::make_path(4), graph::GsoKind::kRandomWalk, {2});
  question.wishes.of_node = true;
  question.target = 3;
  const std::vector<double> heard = answer(question).of_node;
  question.source = 1;  // of a pair too it is what the target hears
  const GraphAnswer pair = answer(question);
  EXPECT_EQ(pair.of_node, heard);
  EXPECT_DOUBLE_EQ(pair.pair->value[0], heard[1]);
}

}  // namespace
}  // namespace mpssm::analysis
