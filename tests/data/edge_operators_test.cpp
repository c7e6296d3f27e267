// SPDX-License-Identifier: MIT
#include "mpssm/data/edge_operators.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpssm/base/error.h"
#include "mpssm/base/random.h"

namespace mpssm::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

using Pattern = std::set<std::pair<std::int64_t, std::int64_t>>;

Pattern pattern_of(const graph::Graph& graph) {
  Pattern result;
  for (std::int64_t i = 0; i < graph.num_nodes(); ++i) {
    for (std::int64_t e = graph.row_ptr()[i]; e < graph.row_ptr()[i + 1]; ++e) {
      result.emplace(i, graph.col()[e]);
    }
  }
  return result;
}

/// Pairs of nodes, some of them listed twice or both ways, with a word or none.
EdgeTable listed_pairs(std::int64_t first, std::int64_t nodes, std::uint64_t seed) {
  base::Random random(seed);
  EdgeTable table{.columns = {{.name = "bond", .words = {"single", "double", "ring (aromatic)"}},
                              {.name = "order"},
                              {.name = "length"}}};
  for (std::int64_t row = 0; row < 3 * nodes; ++row) {
    table.src.push_back(static_cast<std::int32_t>(first + random.below(nodes)));
    table.dst.push_back(static_cast<std::int32_t>(first + random.below(nodes)));
    const std::int64_t word = random.below(4);
    table.columns[0].values.push_back(word == 3 ? NAN : static_cast<double>(word));
    table.columns[1].values.push_back(static_cast<double>(random.below(3)));
    table.columns[2].values.push_back(0.5 + static_cast<double>(row));
  }
  return table;
}

graph::Graph graph_of_pairs(const EdgeTable& table, std::int64_t first, std::int64_t nodes,
                            graph::Direction direction) {
  graph::EdgeList edges{.num_nodes = nodes};
  for (std::size_t row = 0; row < table.src.size(); ++row) {
    edges.src.push_back(table.src[row] - first);
    edges.dst.push_back(table.dst[row] - first);
  }
  return graph::Graph::from_edges(edges, direction);
}

/// By the definition, row by row.
Pattern by_the_rows(const graph::Graph& graph, const EdgeTable& table, double value) {
  const auto has = [&](std::int32_t src, std::int32_t dst) {
    for (std::size_t row = 0; row < table.src.size(); ++row) {
      if (table.src[row] == src && table.dst[row] == dst) return true;
    }
    return false;
  };
  const Pattern all = pattern_of(graph);
  Pattern result;
  for (std::size_t row = 0; row < table.src.size(); ++row) {
    if (table.columns[0].values[row] != value) continue;
    const std::int32_t src = table.src[row];
    const std::int32_t dst = table.dst[row];
    result.emplace(dst, src);
    if (graph.is_symmetric() && !has(dst, src)) result.emplace(src, dst);
  }
  Pattern there;
  std::ranges::set_intersection(result, all, std::inserter(there, there.end()));
  return there;
}

TEST(EdgeOperators, HaveTheEdgesThatAreListedWithTheValue) {
  for (const auto direction : {graph::Direction::kUndirected, graph::Direction::kDirected}) {
    const EdgeTable table = listed_pairs(0, 9, 3);
    const graph::Graph whole = graph_of_pairs(table, 0, 9, direction);
    EXPECT_EQ(pattern_of(edges_with(whole, table, "bond", "single")), by_the_rows(whole, table, 0));
    EXPECT_EQ(pattern_of(edges_with(whole, table, "bond", "double")), by_the_rows(whole, table, 1));
    EXPECT_TRUE(pattern_of(edges_with(whole, table, "bond", "triple")).empty());
    EdgeTable numbers = table;
    numbers.columns[0] = numbers.columns[1];
    EXPECT_EQ(pattern_of(edges_with(whole, table, "order", "2")), by_the_rows(whole, numbers, 2));
  }
}

TEST(EdgeOperators, KnowNoEdgeThatTheGraphHasNot) {
  const EdgeTable table = listed_pairs(0, 9, 3);
  EdgeTable fewer = table;
  fewer.src.resize(8);
  fewer.dst.resize(8);
  const graph::Graph part = graph_of_pairs(fewer, 0, 9, graph::Direction::kDirected);
  EXPECT_EQ(pattern_of(edges_with(part, table, "bond", "single")), by_the_rows(part, table, 0));
}

TEST(EdgeOperators, OfABatchAreThoseOfItsGraphs) {
  const EdgeTable tables[] = {listed_pairs(0, 6, 1), listed_pairs(6, 8, 2)};
  std::vector<graph::Graph> graphs = {
      graph_of_pairs(tables[0], 0, 6, graph::Direction::kUndirected),
      graph_of_pairs(tables[1], 6, 8, graph::Direction::kUndirected)};
  EdgeTable both = tables[0];
  both.src.insert(both.src.end(), tables[1].src.begin(), tables[1].src.end());
  both.dst.insert(both.dst.end(), tables[1].dst.begin(), tables[1].dst.end());
  auto& bonds = both.columns[0].values;
  bonds.insert(bonds.end(), tables[1].columns[0].values.begin(), tables[1].columns[0].values.end());
  const graph::Graph batch = graph::make_batch(graphs);
  const auto groups =
      graph::gso_groups_from_text("sym_normalized:2,random_walk(bond=double),adjacency");
  const graph::Operators made = make_operators(batch, groups, both);
  ASSERT_EQ(made.num_groups(), 3);
  EXPECT_EQ(made.name(1), "random_walk(bond=double)");
  EXPECT_EQ(made.name(0), "sym_normalized");
  EXPECT_EQ(made.num_graphs(), 2);
  const graph::Gso expected =
      graph::make_gso(edges_with(batch, both, "bond", "double"), {graph::GsoKind::kRandomWalk});
  EXPECT_TRUE(std::ranges::equal(made.of_group(1).col(), expected.col()));
  EXPECT_TRUE(std::ranges::equal(made.of_group(1).values<double>(), expected.values<double>()));
  EXPECT_EQ(by_the_rows(batch, both, 1), pattern_of(edges_with(batch, both, "bond", "double")));
  const std::int64_t second[] = {1};
  EXPECT_EQ(graph::select_graphs(made, second).name(1), "random_walk(bond=double)");
}

TEST(EdgeOperators, KeepTheWeights) {
  const EdgeTable table{.src = {0, 1}, .dst = {1, 2}, .columns = {{.name = "k", .values = {1, 2}}}};
  graph::EdgeList edges{.num_nodes = 3, .src = {0, 1}, .dst = {1, 2}, .weight = {0.25, 4.0}};
  const graph::Graph part = edges_with(graph::Graph::from_edges(edges), table, "k", "2");
  EXPECT_TRUE(part.is_symmetric());
  ASSERT_EQ(part.num_entries(), 2);
  EXPECT_EQ(part.weight()[0], 4.0);
}

Dataset with_edges_of(EdgeTable table) {
  NodeData data;
  data.graph = graph_of_pairs(table, 0, 9, graph::Direction::kUndirected);
  data.edge_table = std::move(table);
  return {.name = "some", .content = std::move(data)};
}

TEST(EdgeOperators, AColumnIsAGroupForEachOfItsValues) {
  EdgeTable table = listed_pairs(0, 9, 3);
  const auto spread = [&](const char* text) {
    return to_string(with_values_of_edges(graph::gso_groups_from_text(text), with_edges_of(table)));
  };
  EXPECT_EQ(spread("sym_normalized"), "sym_normalized");
  EXPECT_EQ(spread("sym_normalized:2,adjacency(order):3"),
            "sym_normalized:2,adjacency(order=0):3,adjacency(order=1):3,adjacency(order=2):3");
  EXPECT_EQ(spread("adjacency(order)"), "adjacency(order=0),adjacency(order=1),adjacency(order=2)");
  const auto complaint = [&](const char* text, const auto& of) {
    EXPECT_THAT([&] { spread(text); }, ThrowsMessage<base::Error>(of)) << text;
  };
  complaint("adjacency(length),identity",
            AllOf(HasSubstr("model.gso"), HasSubstr("other numbers")));
  complaint("adjacency(colour),identity", HasSubstr("one of bond, order, length"));
  complaint("adjacency(colour=1),identity", HasSubstr("'colour'"));
  complaint("adjacency(bond),identity",
            HasSubstr("'ring (aromatic)', which model.gso cannot name"));
  complaint("adjacency(order=1)", HasSubstr("adjacency(order=1) alone"));
  table.columns = {};
  complaint("adjacency(order),identity", HasSubstr("nothing is known here but ends and weight"));
}

TEST(EdgeOperators, OfManyGraphsOnlyTheTrainingPartSaysWhichValuesThereAre) {
  GraphsData data{.node_ptr = {0, 2, 4}, .part = {Part::kTrain, Part::kTest}};
  data.edge_table = {.src = {0, 2}, .dst = {1, 3}, .columns = {{.name = "k", .values = {7, 8}}}};
  const Dataset dataset{.name = "two", .content = data};
  EXPECT_EQ(to_string(with_values_of_edges(graph::gso_groups_from_text("identity,adjacency(k)"),
                                           dataset)),
            "identity,adjacency(k=7)");
}

}  // namespace
}  // namespace mpssm::data
