// SPDX-License-Identifier: MIT
// Graphs alone: of datasets, of tables with and without labels, and their nodes by id.
#include "mpssm/data/bare_graph.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <variant>
#include <vector>

#include "mpssm/base/random.h"
#include "mpssm/graph/generators.h"

#include "tests/data/files.h"

namespace mpssm::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::floats;
using ::testing::HasSubstr;
using testing::integers;
using ::testing::IsEmpty;
using testing::Scratch;
using ::testing::StrEq;

bool same(const graph::Graph& a, const graph::Graph& b) {
  return std::ranges::equal(a.row_ptr(), b.row_ptr()) && std::ranges::equal(a.col(), b.col()) &&
         std::ranges::equal(a.weight(), b.weight());
}

class LoadGraph : public ::testing::Test {
 protected:
  std::string complaint(const std::string& name_or_path, const LoadOptions& options = {}) {
    return testing::message_of([&] { load_graph(name_or_path, options); });
  }
  BareGraph from_edges(const std::string& edges, const LoadOptions& options = {}) {
    return load_graph(folder_.put("links.csv", edges), options);
  }
  std::string edges_complaint(const std::string& edges) {
    return complaint(folder_.put("links.csv", edges));
  }

  Scratch folder_;
};

TEST_F(LoadGraph, IsTheGraphOfADataset) {
  const BareGraph board = load_graph("board:4x5");
  EXPECT_EQ(board.name, "board:4x5");
  EXPECT_TRUE(same(board.graph, graph::make_board(4, 5)));
  EXPECT_THAT(board.node_ids, IsEmpty());
}

TEST_F(LoadGraph, IsTheGraphOfTablesThatLoadReads) {
  folder_.put("people/nodes.csv",
              "id,x,label,split\na,1,u,0\nb,2,v,0\nc,3,u,1\nd,4,v,2\nalone,5,v,2\n");
  folder_.put("people/edges.csv", "src,dst,weight\nd,a,0.5\na,b,2\nb,c,1\n");
  for (const LoadOptions& options : {LoadOptions{}, LoadOptions{.directed = EdgeUse::kForward}}) {
    const Dataset dataset = load(folder_ / "people", options);
    const auto& data = std::get<NodeData>(dataset.content);
    for (const char* path : {"people", "people/", "people/nodes.csv", "people/edges.csv"}) {
      const BareGraph bare = load_graph(folder_ / path, options);
      EXPECT_TRUE(same(bare.graph, data.graph)) << path;
      EXPECT_EQ(bare.node_ids, data.node_ids) << path;
      EXPECT_EQ(bare.name, load(folder_ / path, options).name);
      EXPECT_THAT(bare.notes, IsEmpty());
    }
  }
}

TEST_F(LoadGraph, IsTheGraphOfArrays) {
  Dataset made = load("board:6x6");
  auto& data = std::get<NodeData>(made.content);
  for (int i = 0; i < 36; ++i) data.node_ids.push_back("cell " + std::to_string(i));
  save_npz(folder_ / "saved.npz", made);
  const BareGraph bare = load_graph(folder_ / "saved.npz");
  EXPECT_EQ(bare.name, "saved");
  EXPECT_TRUE(same(bare.graph, data.graph));
  EXPECT_EQ(bare.node_ids, data.node_ids);
}

TEST_F(LoadGraph, IsTheGraphOfASeries) {
  std::vector<float> values(150);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 11);
  io::write_npz(folder_ / "s.npz",
                {{"x", floats(values, {50, 3})}, {"edges", integers({0, 1, 1, 2}, {2, 2})}});
  EXPECT_TRUE(same(load_graph(folder_ / "s.npz").graph, graph::make_path(3)));
}

TEST_F(LoadGraph, NotesOfTheDatasetAreKept) {
  io::write_npz(folder_ / "n.npz", {{"node_features", floats({1, 2, 3, 4}, {4, 1})},
                                    {"node_labels", integers({0, 1, 0, 1})},
                                    {"edges", integers({0, 1, 2, 3}, {2, 2})},
                                    {"train_masks", integers({1, 1, 0, 0}, {1, 4})},
                                    {"val_masks", integers({0, 0, 1, 0}, {1, 4})},
                                    {"test_masks", integers({0, 0, 0, 1}, {1, 4})}});
  const Dataset dataset = load(folder_ / "n.npz");
  EXPECT_FALSE(dataset.notes.empty());  // a class is missing in val
  EXPECT_EQ(load_graph(folder_ / "n.npz").notes, dataset.notes);
}

TEST_F(LoadGraph, ManyGraphsAreRefused) {
  EXPECT_THAT(complaint("properties:diameter:8"),
              StrEq("properties:diameter:8: expected one graph, got many (12)"));
}

TEST_F(LoadGraph, UnknownNamesAndFilesAreRefusedAsByLoad) {
  const std::string text = folder_.put("a.txt", "x");
  for (const std::string& name : {std::string("minesweper"), std::string(), text}) {
    EXPECT_EQ(complaint(name), testing::load_complaint(name));
  }
}

TEST_F(LoadGraph, EdgesAloneNumberTheirEndsByFirstAppearance) {
  const BareGraph bare = from_edges("src,dst\nzoe,adam\nadam,7\n7,zoe\neve,eve\n");
  EXPECT_EQ(bare.name, "links");
  EXPECT_THAT(bare.node_ids, ElementsAre("zoe", "adam", "7", "eve"));
  EXPECT_EQ(bare.graph.num_nodes(), 4);
  EXPECT_EQ(bare.graph.num_edges(), 4);
  EXPECT_EQ(bare.graph.num_self_loops(), 1);
  EXPECT_FALSE(bare.graph.is_weighted());
  EXPECT_THAT(bare.notes, IsEmpty());
}

TEST_F(LoadGraph, EdgesAloneMayHaveOtherColumnsAndSeparators) {
  const graph::Graph path = graph::make_path(3);
  EXPECT_TRUE(same(from_edges("source,target\na,b\nb,c\n").graph, path));
  EXPECT_TRUE(same(from_edges("from;to\na;b\nb;c\n").graph, path));
  EXPECT_TRUE(same(from_edges("id,note,dst,src\n0,hi,a,b\n1,ho,b,c\n").graph,
                   from_edges("src,dst\nb,a\nc,b\n").graph));
  EXPECT_THAT(from_edges("id,note,dst,src\n0,hi,a,b\n").node_ids, ElementsAre("b", "a"));
}

TEST_F(LoadGraph, EdgesAloneMayHaveWeightsAndOneDirection) {
  const std::string edges = "src,dst,weight\na,b,0.5\nb,a,2\n";
  const BareGraph bare = from_edges(edges, {.directed = EdgeUse::kForward});
  EXPECT_TRUE(bare.graph.is_weighted());
  EXPECT_FALSE(bare.graph.is_symmetric());
  EXPECT_THAT(bare.graph.weight(), ElementsAre(2.0, 0.5));
  EXPECT_THAT(from_edges(edges).graph.weight(), ElementsAre(2.0, 0.5));
  EXPECT_THAT(from_edges(edges).notes, ::testing::Contains(HasSubstr("edges run one way")));
}

// Any graph without isolated nodes, written as edges in any order, is itself up to the ids.
TEST_F(LoadGraph, EdgesAloneComeBackAsTheGraphTheyWereWrittenFrom) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const graph::Graph made = graph::make_random_connected(12, 20, seed);
    std::vector<std::string> lines;
    for (std::int64_t i = 0; i < made.num_nodes(); ++i) {
      for (std::int64_t e = made.row_ptr()[i]; e < made.row_ptr()[i + 1]; ++e) {
        if (made.col()[e] > i) continue;
        lines.push_back("node " + std::to_string(i) + ",node " + std::to_string(made.col()[e]));
      }
    }
    base::Random(seed).shuffle(lines);
    std::string text = "src,dst\n";
    for (const std::string& line : lines) text += line + "\n";
    const BareGraph bare = from_edges(text);
    ASSERT_EQ(bare.graph.num_edges(), made.num_edges());
    graph::EdgeList renamed{.num_nodes = made.num_nodes()};
    for (std::int64_t i = 0; i < made.num_nodes(); ++i) {
      for (std::int64_t e = made.row_ptr()[i]; e < made.row_ptr()[i + 1]; ++e) {
        renamed.src.push_back(find_node(bare, "node " + std::to_string(made.col()[e])));
        renamed.dst.push_back(find_node(bare, "node " + std::to_string(i)));
      }
    }
    EXPECT_TRUE(same(bare.graph, graph::Graph::from_edges(renamed)));
  }
}

TEST_F(LoadGraph, FolderNeedsNoNodes) {
  folder_.put("links/edges.csv", "src,dst\na,b\nb,c\n");
  const BareGraph bare = load_graph(folder_ / "links");
  EXPECT_EQ(bare.name, "links");
  EXPECT_TRUE(same(bare.graph, graph::make_path(3)));
  EXPECT_THAT(bare.node_ids, ElementsAre("a", "b", "c"));
  EXPECT_THAT(bare.notes, ElementsAre(HasSubstr("no nodes.csv")));
  EXPECT_TRUE(same(load_graph(folder_ / "links/edges.csv").graph, bare.graph));
}

TEST_F(LoadGraph, NodesNeedNoLabelsAndMayBeIsolated) {
  // Columns that a dataset could not use: a number that is none, ends of edges.
  folder_.put("net/nodes.csv", "height,id,src,dst\nnan,a,,\n1,lonely,,\n,b,,\n");
  folder_.put("net/edges.csv", "src,dst\nb,a\n");
  for (const char* path : {"net", "net/nodes.csv", "net/edges.csv"}) {
    const BareGraph bare = load_graph(folder_ / path);
    EXPECT_THAT(bare.node_ids, ElementsAre("a", "lonely", "b"));
    EXPECT_EQ(bare.graph.num_edges(), 1);
    EXPECT_THAT(bare.graph.row_ptr(), ElementsAre(0, 1, 1, 2));
    EXPECT_THAT(bare.notes, IsEmpty());
  }
}

TEST_F(LoadGraph, OneNodeIsAGraph) {
  folder_.put("one/nodes.csv", "id\na\n");
  folder_.put("one/edges.csv", "src,dst\n");
  EXPECT_EQ(load_graph(folder_ / "one").graph.num_nodes(), 1);
}

TEST_F(LoadGraph, TableOfNodesMayHaveAnyName) {
  folder_.put("net/people.csv", "id,age\na,1\nb,2\nc,3\n");
  folder_.put("net/edges.csv", "src,dst\na,b\n");
  const BareGraph bare = load_graph(folder_ / "net/people.csv");
  EXPECT_EQ(bare.name, "people");
  EXPECT_THAT(bare.node_ids, ElementsAre("a", "b", "c"));
  EXPECT_EQ(bare.graph.num_edges(), 1);
}

TEST_F(LoadGraph, BadEdgesAloneAreNamedWithTheirPlace) {
  EXPECT_THAT(edges_complaint("src,dst\na,b\n,b\n"),
              AllOf(HasSubstr("links.csv:3: column 'src'"), HasSubstr("expected an id, got none")));
  EXPECT_THAT(edges_complaint("src,dst,weight\na,b,nan\n"),
              AllOf(HasSubstr("links.csv:2: column 'weight'"), HasSubstr("got 'nan'")));
  EXPECT_THAT(edges_complaint("src,dst,weight\na,b,1e999\n"), HasSubstr("a finite number"));
  EXPECT_THAT(edges_complaint("left,right\na,b\n"),
              AllOf(HasSubstr("expected columns 'src' and 'dst'"), HasSubstr("left, right")));
  EXPECT_THAT(edges_complaint("src,dst\n"), HasSubstr("at least one edge, got the header only"));
  EXPECT_THAT(edges_complaint("src,dst\na\n"), HasSubstr("links.csv:2: expected 2 cells"));
  EXPECT_THAT(edges_complaint(""), HasSubstr("empty file"));
}

TEST_F(LoadGraph, BadTablesAreNamedWithTheirPlace) {
  folder_.put("net/nodes.csv", "id\na\nb\n");
  EXPECT_THAT(complaint(folder_ / "net"), HasSubstr("net: expected a folder with edges.csv"));
  EXPECT_THAT(complaint(folder_ / "net/nodes.csv"), HasSubstr("edges.csv: cannot open"));
  folder_.put("net/edges.csv", "src,dst\na,zoe\n");
  EXPECT_THAT(complaint(folder_ / "net"),
              AllOf(HasSubstr("edges.csv:2: column 'dst'"), HasSubstr("'zoe'")));
  folder_.put("net/nodes.csv", "id\na\na\n");
  EXPECT_THAT(complaint(folder_ / "net"), HasSubstr("'a' again, first in line 2"));
  folder_.put("net/nodes.csv", "name\na\n");
  EXPECT_THAT(complaint(folder_ / "net"), HasSubstr("expected a column 'id', got name"));
  folder_.put("net/nodes.csv", "id\n");
  EXPECT_THAT(complaint(folder_ / "net"), HasSubstr("at least one node"));
  std::filesystem::create_directory(folder_ / "empty");
  EXPECT_THAT(complaint(folder_ / "empty"), HasSubstr("expected a folder with edges.csv"));
}

TEST_F(LoadGraph, DamagedEdgesAreReadOrRefused) {
  testing::for_each_damage("src,dst,weight\na,b,1\n\"b,\",c,2.5\n", [&](const std::string& text) {
    const BareGraph bare = from_edges(text);
    EXPECT_EQ(std::ssize(bare.node_ids), bare.graph.num_nodes());
  });
}

TEST(FindNode, TakesTheNumberIfThereAreNoIds) {
  const BareGraph bare{.name = "p", .graph = graph::make_path(12)};
  EXPECT_EQ(find_node(bare, "0"), 0);
  EXPECT_EQ(find_node(bare, "11"), 11);
  for (const char* id : {"12", "-1", "", "1.0", "1x", " 1", "99999999999999999999"}) {
    EXPECT_THAT(testing::message_of([&] { find_node(bare, id); }),
                StrEq("p: expected a node from 0 to 11, got '" + std::string(id) + "'"));
  }
}

TEST(FindNode, TakesTheIdIfThereAreIds) {
  const BareGraph bare{
      .name = "p", .graph = graph::make_path(4), .node_ids = {"2", "annette", "a\nb", ""}};
  EXPECT_EQ(find_node(bare, "2"), 0);
  EXPECT_EQ(find_node(bare, "annette"), 1);
  EXPECT_EQ(find_node(bare, "a\nb"), 2);
  EXPECT_EQ(find_node(bare, ""), 3);
  EXPECT_THAT(testing::message_of([&] { find_node(bare, "anette"); }),
              StrEq("p: expected a node by its id, got 'anette' (did you mean 'annette'?)"));
  EXPECT_THAT(testing::message_of([&] { find_node(bare, "a\nc"); }),
              HasSubstr("got 'a\\nc' (did you mean 'a\\nb'?)"));
  EXPECT_THAT(testing::message_of([&] { find_node(bare, "something else"); }),
              HasSubstr("got 'something else'; the first id is '2'"));
}

TEST(FindNode, KnowsNoneInAnEmptyGraph) {
  EXPECT_THAT(testing::message_of([] { find_node({.name = "e"}, "0"); }),
              StrEq("e: expected a node of a graph that has none, got '0'"));
}

}  // namespace
}  // namespace mpssm::data
