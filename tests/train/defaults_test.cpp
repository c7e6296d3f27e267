// SPDX-License-Identifier: MIT
#include "mpssm/train/defaults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpssm/graph/generators.h"
#include "mpssm/train/preset.h"

namespace mpssm::train {
namespace {

using ::testing::HasSubstr;

/// The heterophilous benchmark's sizes, as an example of an ordinary graph.
DataFacts ordinary_graph() {
  return {
      .task = data::Task::kNodeBinary,
      .train = 5000,
      .nodes = 10'000,
      .edges = 80'000,
      .features = 7,
      .reach = 99,
      .homophily = data::DataCard::Homophily{.share = 0.68, .by_chance = 0.68, .edges = 20'000}};
}

DataFacts small_graph() {
  DataFacts facts = ordinary_graph();
  facts.train = 300;
  facts.nodes = 600;
  facts.edges = 4000;
  facts.reach = 6;
  return facts;
}

DataFacts series() {
  return {.shape = DataShape::kSeries,
          .task = data::Task::kForecast,
          .train = 3000,
          .nodes = 200,
          .edges = 1500,
          .features = 1,
          .lags = 12};
}

const Choice& choice_of(const std::vector<Choice>& choices, const std::string& key) {
  for (const Choice& choice : choices) {
    if (choice.key == key) return choice;
  }
  throw std::out_of_range(key);
}

TEST(Defaults, SmallDataGetASmallerNetworkAndMoreRegularisation) {
  Config large;
  Config small;
  choose_defaults(ordinary_graph(), large);
  choose_defaults(small_graph(), small);
  EXPECT_LT(small.model.blocks, large.model.blocks);
  EXPECT_GT(small.model.dropout, large.model.dropout);
  EXPECT_GT(small.train.weight_decay, large.train.weight_decay);
  EXPECT_LE(small.train.epochs, large.train.epochs);
  for (const Config& config : {large, small}) {
    EXPECT_NO_THROW(check(config));
    EXPECT_GT(config.train.patience, 0);
    EXPECT_EQ(config.train.schedule, Schedule::kCosine);
    EXPECT_GE(config.train.warmup_epochs, 1.0);
  }
}

TEST(Defaults, ManyFeaturesForFewLabelsAreDroppedInPart) {
  bool in_parts = false;
  const auto chosen = [&](std::int64_t train, std::int64_t features, data::Task task) {
    DataFacts facts = ordinary_graph();
    facts.in_parts = in_parts;
    facts.train = train;
    facts.features = features;
    facts.task = task;
    Config config;
    choose_defaults(facts, config);
    return config.model.input_dropout;
  };
  EXPECT_EQ(chosen(450, 2300, data::Task::kNodeClasses), 0.5);
  EXPECT_EQ(chosen(499, 100, data::Task::kNodeBinary), 0.5);
  EXPECT_EQ(chosen(500, 100, data::Task::kNodeBinary), 0.0);
  EXPECT_EQ(chosen(450, 99, data::Task::kNodeClasses), 0.0);
  EXPECT_EQ(chosen(450, 2300, data::Task::kNodeRegression), 0.0);
  in_parts = true;
  EXPECT_EQ(chosen(450, 2300, data::Task::kNodeClasses), 0.0);
}

TEST(Defaults, HopsReachAcrossAndNotMuchFarther) {
  for (const std::int64_t reach : {0, 1, 3, 7, 50, 5000}) {
    DataFacts facts = small_graph();
    facts.reach = reach;
    Config config;
    choose_defaults(facts, config);
    EXPECT_GE(config.model.hops, 1);
    EXPECT_LE(config.model.hops, 4);
    EXPECT_LT((config.model.hops - 1) * config.model.blocks, std::max<std::int64_t>(reach, 1));
  }
}

TEST(Defaults, WhatWasGivenStaysAndIsSaid) {
  Config config;
  apply_setting(config, "model.channels=48");
  apply_setting(config, "train.patience=0");
  const auto choices = choose_defaults(ordinary_graph(), config);
  EXPECT_EQ(config.model.channels, 48);
  EXPECT_EQ(config.train.patience, 0);
  EXPECT_TRUE(choice_of(choices, "model.channels").given);
  EXPECT_EQ(choice_of(choices, "model.channels").value, "48");
  EXPECT_FALSE(choice_of(choices, "model.blocks").given);
  EXPECT_THAT(to_line(choices), ::testing::Not(HasSubstr("channels")));
  EXPECT_EQ(config.given.size(), 2U);  // what rules choose is not given
}

TEST(Defaults, EveryChoiceIsWhatTheConfigHas) {
  for (const DataFacts& facts : {ordinary_graph(), small_graph(), series()}) {
    Config config;
    for (const Choice& choice : choose_defaults(facts, config)) {
      EXPECT_FALSE(choice.because.empty()) << choice.key;
      for (const Setting& setting : settings_of(config)) {
        if (setting.key != choice.key) continue;
        EXPECT_EQ(setting.value, choice.value) << choice.key;
      }
    }
  }
}

TEST(Defaults, MissingReadingsAreFilledAndMarked) {
  Config config;
  choose_defaults(series(), config);
  EXPECT_FALSE(config.data.fill);
  EXPECT_FALSE(config.data.mark_missing);
  DataFacts facts = series();
  facts.missing = 1234;
  const auto choices = choose_defaults(facts, config);
  EXPECT_EQ(config.data.fill, data::Fill::kLast);
  EXPECT_TRUE(config.data.mark_missing);
  EXPECT_THAT(choice_of(choices, "data.fill").because, HasSubstr("1,234 readings are missing"));
}

TEST(Defaults, RulesSayWhatTheySaw) {
  Config config;
  const auto choices = choose_defaults(ordinary_graph(), config);
  EXPECT_THAT(choice_of(choices, "model.blocks").because, HasSubstr("5,000 labelled nodes"));
  EXPECT_THAT(choice_of(choices, "model.blocks").because, HasSubstr("99 hops across"));
  EXPECT_THAT(choice_of(choices, "model.state").because, HasSubstr("0.68 by chance"));
}

TEST(Defaults, LargeDataTrainForAsLongAsTheBudgetSays) {
  DataFacts facts = ordinary_graph();
  Config config;
  choose_defaults(facts, config);
  facts.nodes *= 20;
  facts.edges *= 20;
  Config larger;
  choose_defaults(facts, larger);
  EXPECT_LT(larger.train.epochs, config.train.epochs);

  Config of_series;
  choose_defaults(series(), of_series);
  facts = series();
  facts.train *= 20;
  Config of_long_series;
  choose_defaults(facts, of_long_series);
  EXPECT_LT(of_long_series.train.epochs, of_series.train.epochs);
  EXPECT_TRUE(of_series.model.skip);
}

TEST(Defaults, FewLabelsAmongLikeNeighboursStartAsASum) {
  DataFacts facts = small_graph();
  Config by_chance;
  choose_defaults(facts, by_chance);
  EXPECT_EQ(by_chance.model.state, nn::StateKind::kStable);
  facts.homophily = data::DataCard::Homophily{.share = 0.9, .by_chance = 0.5, .edges = 100};
  Config alike;
  choose_defaults(facts, alike);
  EXPECT_EQ(alike.model.state, nn::StateKind::kDense);
  facts.train = 5000;
  Config many;
  choose_defaults(facts, many);
  EXPECT_EQ(many.model.state, nn::StateKind::kStable);
}

TEST(Defaults, BatchesFitIntoMemory) {
  DataFacts facts = series();
  Config config;
  choose_defaults(facts, config);
  facts.nodes = 20'000;
  facts.free_mib = 400.0;
  Config in_little;
  choose_defaults(facts, in_little);
  EXPECT_LT(in_little.train.batch, config.train.batch);
  EXPECT_GE(in_little.train.batch, 1);
}

TEST(Defaults, OneWayEdgesTakeMeans) {
  DataFacts facts = ordinary_graph();
  facts.directed = true;
  Config config;
  choose_defaults(facts, config);
  EXPECT_EQ(config.model.gso, graph::GsoKind::kRandomWalk);
}

TEST(Defaults, FactsAreThoseOfTheTrainingPart) {
  data::Dataset dataset;
  dataset.task = data::Task::kNodeBinary;
  data::NodeData nodes;
  nodes.graph = graph::make_path(9);
  nodes.features = {.rows = 9, .columns = 1, .values = std::vector<float>(9, 1.0F)};
  nodes.target = {0, 1, 0, 1, data::kNoLabel, 0, 1, 0, 1};
  nodes.class_names = {"no", "yes"};
  nodes.splits.emplace_back(9, data::Part::kTest);
  for (int i = 0; i < 5; ++i) nodes.splits[0][i] = data::Part::kTrain;
  dataset.content = nodes;
  const DataFacts facts = facts_of(dataset, 0);
  EXPECT_EQ(facts.train, 4);  // one has no label
  EXPECT_EQ(facts.reach, 8);  // from end to end
  EXPECT_EQ(facts.nodes, 9);
  EXPECT_EQ(facts.shape, DataShape::kOneGraph);
  ASSERT_TRUE(facts.homophily);
  EXPECT_EQ(facts.homophily->share, 0.0);
}

TEST(Defaults, OwnDataGoByRulesAndNamesByTheirSettings) {
  EXPECT_TRUE(preset_config("./some/folder").by_rules);
  EXPECT_FALSE(preset_config("minesweeper").by_rules);
  EXPECT_FALSE(preset_config("board:6x6").by_rules);
  EXPECT_TRUE(preset_config("minesweeper").given.empty());
}

TEST(Defaults, UsualAxesAreSettings) {
  for (const DataShape shape : {DataShape::kOneGraph, DataShape::kManyGraphs, DataShape::kSeries}) {
    for (const std::string& axis : usual_axes(shape)) {
      Config config;
      EXPECT_NO_THROW(apply_setting(config, axis.substr(0, axis.find(',')))) << axis;
    }
  }
}

TEST(Config, WithGivenTakesWhatWasGivenAlone) {
  Config base;
  base.model.channels = 12;
  base.train.lr = 0.5;
  Config wanted;
  apply_setting(wanted, "train.lr=0.25");
  apply_setting(wanted, "model.gso=random_walk");
  apply_setting(wanted, "data.target=a=b");
  const Config both = with_given(base, wanted);
  EXPECT_EQ(both.model.channels, 12);
  EXPECT_EQ(both.train.lr, 0.25);
  EXPECT_EQ(both.model.gso, graph::GsoKind::kRandomWalk);
  EXPECT_EQ(both.data.target, "a=b");
}

}  // namespace
}  // namespace mpssm::train
