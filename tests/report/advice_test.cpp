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

TEST(Advice, OfNothingIsNothing) {
  EXPECT_EQ(to_text(small_graph(), {}), "");
  EXPECT_EQ(to_json(small_graph(), {}), R"({"graph":"small"})");
}

}  // namespace
}  // namespace mpssm::report
