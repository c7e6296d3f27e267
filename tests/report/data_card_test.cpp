// SPDX-License-Identifier: MIT
#include <nlohmann/json.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpssm/report/data_card_text.h"

namespace mpssm::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

data::DataCard card_of_people() {
  data::DataCard card{.name = "people",
                      .source = "people/nodes.csv",
                      .shape = "one graph",
                      .task = "node_binary",
                      .why = "column 'label' holds text, 2 different values",
                      .metric = "roc_auc",
                      .target = "label",
                      .nodes = 6,
                      .edges = 1,
                      .components = 5,
                      .isolated = 4,
                      .features = 3,
                      .labelled = 5,
                      .unlabelled = 1,
                      .samples = "nodes",
                      .train = 3,
                      .val = 1,
                      .test = 1,
                      .protocol = "random split"};
  card.homophily = data::DataCard::Homophily{.share = 0.25, .by_chance = 0.5, .edges = 4};
  card.classes = {{"no", 3}, {"yes", 2}};
  card.columns = {
      {.name = "age", .type = "number", .encoding = "standardised", .features = 2, .missing = 1},
      {.name = "key", .type = "text", .unused = "like an id"}};
  return card;
}

TEST(DataCard, IsToldLineByLine) {
  EXPECT_EQ(text_of(card_of_people()),
            "people: one graph\n"
            "  source    people/nodes.csv\n"
            "  graph     6 nodes, 1 edge both ways, 5 components (4 of them a single node)\n"
            "  task      node_binary, measured by roc_auc (column 'label' holds text, 2 different "
            "values; data.task changes it)\n"
            "  classes   no 3, yes 2\n"
            "  labels    5 there, 1 missing\n"
            "  homophily 0.25 of 4 edges between training nodes join one class; 0.50 by chance\n"
            "  features  3 for each node\n"
            "  split     3 train, 1 val, 1 test nodes\n"
            "  protocol  random split\n"
            "column  type    features  missing\n"
            "age     number         2        1  standardised\n"
            "key     text    -                  not used: like an id\n");
}

TEST(DataCard, OfManyClassesShowsSomeAndTheirSizes) {
  data::DataCard card = card_of_people();
  for (int c = 0; c < 38; ++c) card.classes.push_back({"c" + std::to_string(c), c});
  EXPECT_THAT(text_of(card), HasSubstr("(40 classes of 0 to 37)"));
}

TEST(DataCard, AsJsonHoldsTheSame) {
  const auto json = nlohmann::json::parse(to_json(card_of_people()));
  EXPECT_EQ(json["task"], "node_binary");
  EXPECT_EQ(json["nodes"], 6);
  EXPECT_EQ(json["parts"]["train"], 3);
  EXPECT_EQ(json["classes"][1]["name"], "yes");
  EXPECT_EQ(json["columns"][0]["missing"], 1);
  EXPECT_EQ(json["columns"][1]["not_used"], "like an id");
  EXPECT_EQ(json["homophily"]["share"], 0.25);
  EXPECT_THAT(to_json(card_of_people()), Not(HasSubstr("\n")));
}

}  // namespace
}  // namespace mpssm::report
