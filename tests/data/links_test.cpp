// SPDX-License-Identifier: MIT
// Edges that are held out, and pairs that have none.
#include "mpssm/data/links.h"

#include <algorithm>
#include <fmt/core.h>
#include <set>

#include "mpssm/data/data_card.h"
#include "mpssm/graph/generators.h"

#include "tests/data/files.h"

namespace mpssm::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::load_complaint;
using testing::Scratch;

std::string ring_of_edges(int count) {
  std::string text = "src,dst\n";
  for (int i = 0; i < count; ++i) text += fmt::format("n{},n{}\n", i, (i + 1) % count);
  return text;
}

const Links& links_of(const Dataset& dataset) {
  return std::get<NodeData>(dataset.content).links.value();
}

TEST(NodePairs, AreTheEdgesOfAGraph) {
  const auto graph = graph::Graph::from_edges({.num_nodes = 3, .src = {0, 2, 1}, .dst = {1, 1, 1}});
  EXPECT_EQ(pairs_of(graph), (std::vector<NodePair>{{0, 1}, {1, 2}}));
  EXPECT_TRUE(has_edge(graph, {2, 1}));
  EXPECT_FALSE(has_edge(graph, {0, 2}));
  const auto one_way = graph::Graph::from_edges({.num_nodes = 3, .src = {0, 2}, .dst = {1, 1}},
                                                graph::Direction::kDirected);
  EXPECT_EQ(pairs_of(one_way), (std::vector<NodePair>{{0, 1}, {2, 1}}));
  EXPECT_TRUE(has_edge(one_way, {2, 1}));
  EXPECT_FALSE(has_edge(one_way, {1, 2}));
}

TEST(NodePairs, CanBeTakenOut) {
  const auto graph = graph::Graph::from_edges(
      {.num_nodes = 4, .src = {0, 1, 2, 3}, .dst = {1, 2, 3, 3}, .weight = {2, 3, 4, 5}});
  const std::vector<NodePair> out = {{0, 2}, {1, 2}};  // one of them is no edge
  const auto less = without_edges(graph, out);
  EXPECT_EQ(pairs_of(less), (std::vector<NodePair>{{0, 1}, {2, 3}}));
  EXPECT_EQ(less.num_self_loops(), 1);
  EXPECT_THAT(std::vector<double>(less.weight().begin(), less.weight().end()),
              ElementsAre(2, 2, 4, 4, 5));
}

TEST(NodePairs, WithoutAnEdgeAreDrawnEvenly) {
  const auto graph = graph::make_ring(5);
  base::Random random(1);
  std::map<std::pair<int, int>, int> count;
  constexpr int kDraws = 5000;
  for (int i = 0; i < kDraws; ++i) {
    const NodePair pair = draw_other(graph, /*directed=*/false, random);
    EXPECT_LT(pair.src, pair.dst);
    EXPECT_FALSE(has_edge(graph, pair));
    ++count[{pair.src, pair.dst}];
  }
  ASSERT_EQ(count.size(), 5u);  // of ten pairs five are edges
  for (const auto& [pair, times] : count) EXPECT_NEAR(times, kDraws / 5, 120);
}

class HeldOut : public ::testing::Test {
 protected:
  Dataset load_links(const std::string& edges, LoadOptions options = {}) {
    options.task = Task::kLinks;
    return load(folder_.put("own/edges.csv", edges), options);
  }
  Scratch folder_;
};

TEST_F(HeldOut, EdgesAreNotInTheGraph) {
  const Dataset dataset = load_links(ring_of_edges(100));
  const auto& data = std::get<NodeData>(dataset.content);
  const Links& links = links_of(dataset);
  EXPECT_EQ(dataset.task, Task::kLinks);
  EXPECT_EQ(dataset.metric, "roc_auc");
  EXPECT_EQ(links.whole.num_edges(), 100);
  EXPECT_EQ(data.graph.num_edges(), 80);
  EXPECT_EQ(links.edges[0].size(), 80u);
  std::set<NodePair> seen;
  for (const std::size_t part : {0, 1, 2}) {
    for (const NodePair& pair : links.edges[part]) {
      EXPECT_EQ(has_edge(data.graph, pair), part == 0);
      EXPECT_TRUE(has_edge(links.whole, pair));
      EXPECT_TRUE(seen.insert(pair).second);
    }
    EXPECT_EQ(links.others[part].size(), part == 0 ? 0u : 10u);
    for (const NodePair& pair : links.others[part]) {
      EXPECT_FALSE(has_edge(links.whole, pair));
      EXPECT_TRUE(seen.insert(pair).second);
    }
  }
  const DataCard card = make_card(dataset);
  EXPECT_EQ(card.samples, "edges");
  EXPECT_EQ(card.edges, 100);
  EXPECT_EQ(card.train + card.val + card.test, 100);
}

TEST_F(HeldOut, TheDegreeIsThatOfTheTrainingGraph) {
  const Dataset dataset = load_links(ring_of_edges(100), {.standardise = false});
  const auto& data = std::get<NodeData>(dataset.content);
  std::set<float> values(data.features.values.begin(), data.features.values.end());
  EXPECT_GT(values.size(), 1u);  // in the whole ring all have two neighbours
}

TEST_F(HeldOut, FollowsTheSeed) {
  const Dataset a = load_links(ring_of_edges(60));
  const Dataset b = load_links(ring_of_edges(60));
  const Dataset c = load_links(ring_of_edges(60), {.split_seed = 1});
  EXPECT_EQ(links_of(a).edges, links_of(b).edges);
  EXPECT_EQ(links_of(a).others, links_of(b).others);
  EXPECT_NE(links_of(a).edges, links_of(c).edges);
  // What a run has kept is taken as it is.
  const Links kept = links_of(c);
  const Dataset d = load_links(ring_of_edges(60), {.links = &kept});
  EXPECT_EQ(links_of(d).edges, kept.edges);
  EXPECT_EQ(links_of(d).others, kept.others);
}

TEST_F(HeldOut, DirectionsCount) {
  std::string text = "src,dst\n";
  for (int i = 0; i < 40; ++i) text += fmt::format("{},{}\n", i, (7 * i + 1) % 40);
  const Dataset dataset = load_links(text, {.directed = EdgeUse::kForward});
  const Links& links = links_of(dataset);
  EXPECT_FALSE(links.whole.is_symmetric());
  for (const std::size_t part : {1, 2}) {
    for (const NodePair& pair : links.edges[part]) {
      EXPECT_TRUE(has_edge(links.whole, pair));
      EXPECT_FALSE(has_edge(std::get<NodeData>(dataset.content).graph, pair));
    }
  }
}

TEST_F(HeldOut, ADenseGraphHasOthersAsLongAsThereAreAny) {
  std::string text = "src,dst\n";
  for (int i = 0; i < 10; ++i) {
    for (int j = 0; j < i; ++j) {
      if ((i + j) % 4 != 0) text += fmt::format("{},{}\n", i, j);
    }
  }
  const Dataset dataset = load_links(text);
  EXPECT_EQ(links_of(dataset).others[2].size(), links_of(dataset).edges[2].size());
}

TEST_F(HeldOut, TooFewAreAnError) {
  const LoadOptions links{.task = Task::kLinks};
  folder_.put("few/edges.csv", "src,dst\na,b\nb,c\n");
  EXPECT_THAT(load_complaint(folder_ / "few", links),
              AllOf(HasSubstr("edges.csv"), HasSubstr("at least 10 edges"), HasSubstr("got 2")));
  std::string complete = "src,dst\n";
  for (int i = 0; i < 6; ++i) {
    for (int j = 0; j < i; ++j) complete += fmt::format("{},{}\n", i, j);
  }
  folder_.put("full/edges.csv", complete);
  EXPECT_THAT(load_complaint(folder_ / "full", links),
              AllOf(HasSubstr("pairs of nodes without an edge"), HasSubstr("got 0")));
}

TEST_F(HeldOut, PairsAreReadByTheirNames) {
  const Dataset dataset = load_links(ring_of_edges(20));
  const auto& data = std::get<NodeData>(dataset.content);
  EXPECT_EQ(read_pairs(folder_.put("pairs.csv", "src,dst\nn3,n1\nn0,n19\n"), data),
            (std::vector<NodePair>{{3, 1}, {0, 19}}));
  const auto complaint = [&](const std::string& text) {
    return testing::message_of([&] { read_pairs(folder_.put("pairs.csv", text), data); });
  };
  EXPECT_THAT(complaint("src,dst\nn3,zoe\n"),
              AllOf(HasSubstr("pairs.csv:2: column 'dst'"), HasSubstr("'zoe'")));
  EXPECT_THAT(complaint("src,dst\nn3,n3\n"), HasSubstr("two different nodes"));
  EXPECT_THAT(complaint("src,dst\n"), HasSubstr("at least one pair"));
}

}  // namespace
}  // namespace mpssm::data
