// SPDX-License-Identifier: MIT
// GraphML, GML and folders of the Open Graph Benchmark; what is known of edges; every format
// written and read again.
#include <cmath>
#include <fmt/core.h>

#include "mpssm/data/data_card.h"
#include "mpssm/data/save_as.h"
#include "mpssm/io/file.h"

#include "tests/data/files.h"

namespace mpssm::data {
namespace {

using ::testing::AllOf;
using testing::Arrays;
using ::testing::Contains;
using ::testing::ElementsAre;
using testing::floats;
using ::testing::HasSubstr;
using testing::integers;
using ::testing::IsEmpty;
using testing::load_complaint;
using testing::Scratch;

constexpr const char* kGraphml = R"(<?xml version='1.0' encoding='utf-8'?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="d0" for="node" attr.name="height" attr.type="double"/>
<key id="d1" for="node" attr.name="label" attr.type="string"><default>low</default></key>
<key id="d2" for="edge" attr.name="weight" attr.type="double"/>
<key id="d3" for="edge" attr.name="kind" attr.type="string"/>
<key id="d4" for="node" attr.name="drawing" yfiles.type="nodegraphics"/>
<graph edgedefault="undirected">
<node id="a"><data key="d0">1.5</data></node>
<node id="b &amp; c"><data key="d0">2.5</data><data key="d1">high</data></node>
<node id="d"><data key="d0">3.5</data><data key="d4"><y:ShapeNode x="1">t</y:ShapeNode></data></node>
<node id="e"><data key="d0">4.5</data><data key="d1">high</data></node>
<node id="f"><data key="d0">5.5</data><data key="d1">high</data></node>
<edge source="a" target="b &amp; c"><data key="d2">2</data><data key="d3">road</data></edge>
<edge source="b &amp; c" target="d"><data key="d2">3</data></edge>
<edge source="d" target="e"><data key="d2">1</data><data key="d3">rail</data></edge>
<edge source="e" target="f"><data key="d2">1</data><data key="d3">road</data></edge>
</graph></graphml>
)";

class Formats : public ::testing::Test {
 protected:
  static const NodeData& nodes_of(const Dataset& dataset) {
    return std::get<NodeData>(dataset.content);
  }
  std::string complaint_about(const std::string& name, const std::string& text) {
    return load_complaint(folder_.put(name, text));
  }
  Scratch folder_;
};

TEST_F(Formats, GraphmlIsReadAsTheTablesThatItIs) {
  const Dataset dataset = load(folder_.put("g.graphml", kGraphml), {.standardise = false});
  const NodeData& data = nodes_of(dataset);
  EXPECT_EQ(dataset.task, Task::kNodeBinary);
  EXPECT_THAT(data.node_ids, ElementsAre("a", "b & c", "d", "e", "f"));
  EXPECT_THAT(data.class_names, ElementsAre("high", "low"));
  EXPECT_THAT(data.target, ElementsAre(1, 0, 1, 0, 0));
  EXPECT_THAT(data.features.values, ElementsAre(1.5, 2.5, 3.5, 4.5, 5.5));
  EXPECT_EQ(data.graph.num_edges(), 4);
  EXPECT_TRUE(data.graph.is_weighted());
  ASSERT_EQ(data.edge_table.columns.size(), 1u);
  EXPECT_EQ(data.edge_table.columns[0].name, "kind");
  EXPECT_THAT(data.edge_table.columns[0].words, ElementsAre("road", "rail"));
  EXPECT_THAT(dataset.notes, Contains(HasSubstr("'drawing'")));
  EXPECT_THAT(make_card(dataset).edge_columns, ElementsAre("kind"));
}

TEST_F(Formats, GraphmlThatCannotBeReadIsRefused) {
  const auto about = [&](const std::string& body) {
    return complaint_about("g.graphml", "<graphml>\n" + body + "</graphml>");
  };
  EXPECT_THAT(complaint_about("g.graphml", ""), HasSubstr("g.graphml:1"));
  EXPECT_THAT(complaint_about("g.graphml", "<html></html>"), HasSubstr("expected <graphml>"));
  EXPECT_THAT(about(""), HasSubstr("<graph>"));
  EXPECT_THAT(about("<graph>\n<node/></graph>"),
              AllOf(HasSubstr("g.graphml:3"), HasSubstr("'id'")));
  EXPECT_THAT(about("<graph><edge source='a'/></graph>"), HasSubstr("'target'"));
  EXPECT_THAT(about("<graph></graph><graph></graph>"), HasSubstr("one <graph>"));
  EXPECT_THAT(about("<graph><hyperedge/></graph>"), HasSubstr("<hyperedge>"));
  EXPECT_THAT(about("<graph><node id='a'><data key='q'>1</data></node></graph>"), HasSubstr("'q'"));
  EXPECT_THAT(about("<graph><node id='a'></graph>"), HasSubstr("mismatched tag"));
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += "<x>";
  EXPECT_THAT(about(deep), HasSubstr("64 deep"));
  EXPECT_THAT(complaint_about("g.graphml",
                              "<!DOCTYPE graphml [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]>\n"
                              "<graphml><graph><node id=\"&b;\"/></graph></graphml>"),
              AllOf(HasSubstr("entities"), HasSubstr("take it out")));
}

TEST_F(Formats, GmlIsReadAsTheTablesThatItIs) {
  const std::string text = R"(Creator "somebody" # with a comment
graph [
  directed 1
  node [ id 0 label "a" class "x" size 1.5 graphics [ w 1.0 ] ]
  node [ id 1 label "M&#228;rz &amp; &quot;co&quot;" class "y" size 2 ]
  node [ id 5 label "c" class "x" size 3 ]
  node [ id 6 label "d" class "y" size 4 ]
  edge [ source 0 target 1 value 7 ]
  edge [ source 1 target 5 ]
  edge [ source 6 target 5 value 8 ]
]
)";
  const Dataset dataset = load(folder_.put("g.gml", text), {.standardise = false});
  const NodeData& data = nodes_of(dataset);
  EXPECT_THAT(data.node_ids, ElementsAre("a", "M\xc3\xa4rz & \"co\"", "c", "d"));
  EXPECT_THAT(data.class_names, ElementsAre("x", "y"));
  EXPECT_THAT(data.features.values, ElementsAre(1.5, 2, 3, 4));
  EXPECT_FALSE(data.graph.is_symmetric());
  EXPECT_EQ(data.edge_table.columns.at(0).name, "value");
  EXPECT_EQ(data.edge_table.columns[0].values[0], 7);
  EXPECT_TRUE(std::isnan(data.edge_table.columns[0].values[1]));
  EXPECT_THAT(dataset.notes, Contains(HasSubstr("'graphics'")));
}

TEST_F(Formats, GmlThatCannotBeReadIsRefused) {
  const auto about = [&](const std::string& text) { return complaint_about("g.gml", text); };
  EXPECT_THAT(about(""), HasSubstr("graph [ ... ]"));
  EXPECT_THAT(about("graph [\nnode [ id 0"), AllOf(HasSubstr("g.gml:2"), HasSubstr("end of")));
  EXPECT_THAT(about("graph [\n\nnode [ label \"a\" ] ]"),
              AllOf(HasSubstr("g.gml:3"), HasSubstr("'id'")));
  EXPECT_THAT(about("graph [ node [ id 0 ] edge [ source 0 target 4 ] ]"), HasSubstr("got 4"));
  EXPECT_THAT(about("graph [ node [ id 0 ] node [ id 0 ] ]"), HasSubstr("0 again"));
  EXPECT_THAT(about("graph [ node [ id zero ] ]"), HasSubstr("'zero'"));
  EXPECT_THAT(about("graph [ node [ id 0 label \"a ] ]"), HasSubstr("quote"));
  EXPECT_THAT(about("graph [ node 7 ]"), HasSubstr("expected ["));
  EXPECT_THAT(about("graph [ = ]"), HasSubstr("'='"));
  std::string deep = "x [ ";
  for (int i = 0; i < 100; ++i) deep += "x [ ";
  EXPECT_THAT(about(deep), HasSubstr("64 deep"));
}

TEST_F(Formats, AFolderOfOgbIsReadWithItsSplit) {
  folder_.put("ogbn/raw/num-node-list.csv", "5\n");
  folder_.put("ogbn/raw/num-edge-list.csv", "4\n");
  folder_.put("ogbn/raw/edge.csv", "0,1\n1,2\n2,3\n3,4\n");
  folder_.put("ogbn/raw/node-feat.csv", "0.5,1\n1.5,2\n2.5,3\n3.5,4\n4.5,-5\n");
  folder_.put("ogbn/raw/node-label.csv", "0\n1\n0\n1\nnan\n");
  folder_.put("ogbn/raw/edge-feat.csv", "1,2\n3,4\n5,6\n7,8\n");
  folder_.put("ogbn/split/time/train.csv", "0\n1\n");
  folder_.put("ogbn/split/time/valid.csv", "2\n");
  folder_.put("ogbn/split/time/test.csv", "3\n");
  const Dataset dataset = load(folder_ / "ogbn");
  const NodeData& data = nodes_of(dataset);
  EXPECT_EQ(dataset.task, Task::kNodeBinary);
  EXPECT_EQ(dataset.files.size(), 9u);
  EXPECT_THAT(data.features.values, ElementsAre(0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, -5));
  EXPECT_TRUE(std::isnan(data.target[4]));
  EXPECT_THAT(data.splits[0],
              ElementsAre(Part::kTrain, Part::kTrain, Part::kVal, Part::kTest, Part::kNone));
  EXPECT_EQ(data.graph.num_edges(), 4);
  EXPECT_EQ(data.edge_table.columns.at(1).values[3], 8);
  EXPECT_THAT(dataset.protocol, HasSubstr("'time'"));
}

TEST_F(Formats, AFolderOfOgbWithManyGraphsHasCategories) {
  folder_.put("ogbg/raw/num-node-list.csv", "2\n3\n1\n2\n");
  folder_.put("ogbg/raw/num-edge-list.csv", "1\n2\n0\n1\n");
  folder_.put("ogbg/raw/edge.csv", "0,1\n0,1\n1,2\n1,0\n");
  folder_.put("ogbg/raw/node-feat.csv", "0,1\n2,0\n0,0\n1,1\n2,0\n5,1\n0,0\n1,0\n");
  folder_.put("ogbg/raw/graph-label.csv", "0,1\n1,nan\n0,0\n1,1\n");
  folder_.put("ogbg/split/scaffold/train.csv", "0\n1\n");
  folder_.put("ogbg/split/scaffold/valid.csv", "2\n");
  folder_.put("ogbg/split/scaffold/test.csv", "3\n");
  const Dataset dataset = load(folder_ / "ogbg");
  const auto& data = std::get<GraphsData>(dataset.content);
  EXPECT_EQ(dataset.task, Task::kGraphLabels);
  EXPECT_THAT(data.node_ptr, ElementsAre(0, 2, 5, 6, 8));
  EXPECT_THAT(data.edge_ptr, ElementsAre(0, 2, 6, 6, 8));
  EXPECT_THAT(data.vocabulary, ElementsAre(6, 2));
  EXPECT_THAT(data.part, ElementsAre(Part::kTrain, Part::kTrain, Part::kVal, Part::kTest));
}

// ---- what is known of edges, and formats into each other ----

constexpr const char* kFiveNodes =
    "id,x,label,split\na,0.5,u,train\nb,1.25,v,train\nc,2,u,val\nd,3,v,test\n\"e, "
    "\"\"f\"\" \u00e9\u20ac\",4,,\n";

void expect_same(const Dataset& a, const Dataset& b) {
  const auto& x = std::get<NodeData>(a.content);
  const auto& y = std::get<NodeData>(b.content);
  EXPECT_EQ(a.task, b.task);
  EXPECT_EQ(x.node_ids, y.node_ids);
  EXPECT_EQ(x.features.values, y.features.values);
  EXPECT_EQ(x.class_names, y.class_names);
  EXPECT_EQ(x.splits[0], y.splits[0]);
  ASSERT_EQ(x.target.size(), y.target.size());
  for (std::size_t i = 0; i < x.target.size(); ++i) {
    EXPECT_TRUE(x.target[i] == y.target[i] || (std::isnan(x.target[i]) && std::isnan(y.target[i])));
  }
  EXPECT_TRUE(std::ranges::equal(x.graph.row_ptr(), y.graph.row_ptr()));
  EXPECT_TRUE(std::ranges::equal(x.graph.col(), y.graph.col()));
  EXPECT_TRUE(std::ranges::equal(x.graph.weight(), y.graph.weight()));
  EXPECT_EQ(x.edge_table.src, y.edge_table.src);
  EXPECT_EQ(x.edge_table.dst, y.edge_table.dst);
  ASSERT_EQ(x.edge_table.columns.size(), y.edge_table.columns.size());
  for (std::size_t c = 0; c < x.edge_table.columns.size(); ++c) {
    const EdgeColumn& left = x.edge_table.columns[c];
    const EdgeColumn& right = y.edge_table.columns[c];
    EXPECT_EQ(left.name, right.name);
    EXPECT_EQ(left.words, right.words);
    for (std::size_t row = 0; row < left.values.size(); ++row) {
      EXPECT_TRUE(left.values[row] == right.values[row] ||
                  (std::isnan(left.values[row]) && std::isnan(right.values[row])));
    }
  }
}

class RoundTrips : public Formats, public ::testing::WithParamInterface<const char*> {};

TEST_P(RoundTrips, OneGraphComesBackWithAllOfItsEdges) {
  const LoadOptions raw{.standardise = false};
  for (const char* edges : {"src,dst,weight,since,kind\na,b,2,1.5,road\nb,c,0.1,,rail\nc,d,3,1e300,"
                            "\nd,\"e, \"\"f\"\" \u00e9\u20ac\",1,0,road\n",
                            "src,dst\na,b\nb,c\n", "src,dst,weight\na,b,1\nb,a,2\n",
                            "src,dst,kind\na,b,road\nb,a,rail\na,b,path\n"}) {
    folder_.put("own/nodes.csv", kFiveNodes);
    folder_.put("own/edges.csv", edges);
    const Dataset before = load(folder_ / "own", raw);
    const std::string out =
        folder_ / fmt::format("{}{}", std::string_view(edges).size(), GetParam());
    save_as(out, before);
    expect_same(before, load(out, raw));
    if (!out.ends_with(".gml")) continue;  // NetworkX reads no other bytes there
    for (const char c : io::read_file(out)) EXPECT_GT(c, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Every, RoundTrips,
                         ::testing::Values(".npz", "-tables", ".json", ".graphml", ".gml"));

TEST_F(Formats, EdgeFeaturesOfManyGraphsAreKept) {
  folder_.put("g/nodes.csv",
              "graph,id,x\na,0,1\na,1,2\nb,0,3\nb,1,4\nc,0,5\nc,1,6\nd,0,1\nd,1,1\n");
  folder_.put("g/edges.csv", "graph,src,dst,bond\na,0,1,2\nb,1,0,1\nc,0,1,aromatic\nd,1,0,\n");
  folder_.put("g/graphs.csv", "graph,label,split\na,1.5,train\nb,2,train\nc,2.5,val\nd,3,test\n");
  const LoadOptions raw{.standardise = false};
  const Dataset before = load(folder_ / "g", raw);
  const auto table_of = [](const Dataset& dataset) {
    return std::get<GraphsData>(dataset.content).edge_table;
  };
  EXPECT_THAT(table_of(before).src, ElementsAre(0, 3, 4, 7));
  EXPECT_THAT(table_of(before).dst, ElementsAre(1, 2, 5, 6));
  EXPECT_THAT(table_of(before).columns.at(0).words, ElementsAre("2", "1", "aromatic"));
  EXPECT_THAT(before.notes, Contains(AllOf(HasSubstr("kept"), HasSubstr("'bond'"))));
  for (const char* out : {"g.npz", "g-tables"}) {
    save_as(folder_ / out, before);
    const Dataset after = load(folder_ / out, raw);
    EXPECT_EQ(table_of(after).src, table_of(before).src) << out;
    EXPECT_EQ(table_of(after).dst, table_of(before).dst) << out;
    EXPECT_EQ(table_of(after).columns.at(0).words, table_of(before).columns[0].words) << out;
    EXPECT_EQ(std::get<GraphsData>(after.content).edge_src,
              std::get<GraphsData>(before.content).edge_src);
  }
  EXPECT_THAT(testing::message_of([&] { save_as(folder_ / "g.gml", before); }),
              AllOf(HasSubstr("one graph"), HasSubstr("many graphs"), HasSubstr(".npz")));
}

std::vector<double> weights_at(const SeriesData& data, std::size_t step) {
  const auto weight = data.changing.graphs[data.changing.of_step[step]].weight();
  return {weight.begin(), weight.end()};
}

// a-b from the start, from time 20 on b-c instead, from 30 on both and a-b heavier.
TEST_F(Formats, EdgesWithTimesAreAGraphForEachStep) {
  std::string series = "time,a,b,c\n";
  for (int t = 0; t < 60; ++t) series += fmt::format("{},{},{},{}\n", t, t % 5, t % 3, t % 7);
  folder_.put("s/series.csv", series);
  folder_.put("s/edges.csv",
              "src,dst,weight,time\nb,c,5,20\na,b,1,3\na,b,4,30\nb,c,5,30\na,c,9,99\n");
  const Dataset before = load(folder_ / "s");
  const auto& data = std::get<SeriesData>(before.content);
  ASSERT_EQ(data.changing.graphs.size(), 3u);
  ASSERT_EQ(data.changing.of_step.size(), 60u);
  EXPECT_THAT(weights_at(data, 0), ElementsAre(1, 1));
  EXPECT_THAT(weights_at(data, 19), ElementsAre(1, 1));
  EXPECT_THAT(weights_at(data, 20), ElementsAre(5, 5));
  EXPECT_THAT(weights_at(data, 59), ElementsAre(4, 4, 5, 5));
  EXPECT_EQ(make_card(before).series->graphs, 3);
  for (const char* out : {"s.npz", "s-tables"}) {
    save_as(folder_ / out, before);
    const Dataset after = load(folder_ / out);
    const auto& again = std::get<SeriesData>(after.content);
    EXPECT_EQ(again.changing.of_step, data.changing.of_step) << out;
    for (const std::size_t step : {0, 20, 30}) {
      EXPECT_EQ(weights_at(again, step), weights_at(data, step)) << out;
    }
  }
}

TEST_F(Formats, StepsOfEdgesAreChecked) {
  Arrays arrays = {{"x", floats(std::vector<float>(90, 1.0f), {30, 3})},
                   {"edges", integers({0, 1, 1, 2}, {2, 2})},
                   {"edge_step", integers({0, 30})}};
  io::write_npz(folder_ / "d.npz", arrays);
  EXPECT_THAT(testing::message_of([&] { load(folder_ / "d.npz"); }),
              HasSubstr("array 'edge_step': [1]: expected a step from 0 to 29, got 30"));
  arrays["edge_step"] = integers({0, 10});
  io::write_npz(folder_ / "e.npz", arrays);
  const Dataset dataset = load(folder_ / "e.npz");
  const auto& data = std::get<SeriesData>(dataset.content);
  EXPECT_EQ(data.changing.of_step[9], 0);
  EXPECT_EQ(data.changing.of_step[10], 1);
  EXPECT_EQ(data.graph.num_entries(), 4);
  EXPECT_THAT(dataset.notes, Contains(HasSubstr("data.graph_over_time=true")));
}

TEST_F(Formats, EdgesThatChangeOverTimeAreOneGraph) {
  std::string series = "time,a,b,c\n";
  for (int t = 0; t < 60; ++t) series += fmt::format("{},{},{},{}\n", t, t % 5, t % 3, t % 7);
  folder_.put("s/series.csv", series);
  folder_.put("s/edges.csv", "time,src,dst,weight\n0,a,b,1\n1,a,b,3\n1,b,c,5\n");
  const Dataset before = load(folder_ / "s");
  const auto& data = std::get<SeriesData>(before.content);
  EXPECT_THAT(std::vector<double>(data.graph.weight().begin(), data.graph.weight().end()),
              ElementsAre(2, 2, 5, 5));
  EXPECT_THAT(before.notes, Contains(AllOf(HasSubstr("change over time"), HasSubstr("mean"))));
  EXPECT_THAT(data.edge_table.columns.at(0).values, ElementsAre(0, 1, 1));
  for (const char* out : {"s.npz", "s-tables"}) {
    save_as(folder_ / out, before);
    const Dataset after = load(folder_ / out);
    const auto& again = std::get<SeriesData>(after.content);
    EXPECT_TRUE(std::ranges::equal(again.graph.weight(), data.graph.weight())) << out;
    EXPECT_EQ(again.edge_table.columns.at(0).values, data.edge_table.columns[0].values) << out;
  }
}

TEST_F(Formats, ArraysOfEdgesAreKept) {
  Arrays arrays = {{"x", floats({1, 2, 3, 4}, {4, 1})},
                   {"y", integers({0, 1, 0, 1})},
                   {"edge_index", integers({0, 1, 2, 1, 2, 3}, {2, 3})},
                   {"edge_attr", floats({1, 2, 3, 4, 5, 6}, {3, 2})}};
  io::write_npz(folder_ / "d.npz", arrays);
  const Dataset dataset = load(folder_ / "d.npz");
  const EdgeTable& table = nodes_of(dataset).edge_table;
  EXPECT_THAT(table.src, ElementsAre(0, 1, 2));
  ASSERT_EQ(table.columns.size(), 2u);
  EXPECT_EQ(table.columns[1].name, "edge_attr_1");
  EXPECT_THAT(table.columns[1].values, ElementsAre(2, 4, 6));
  arrays["edge_attr"] = floats({1, 2}, {2, 1});
  io::write_npz(folder_ / "e.npz", arrays);
  EXPECT_THAT(load_complaint(folder_ / "e.npz"), HasSubstr("'edge_attr'"));
}

TEST_F(Formats, FreeTextIsReadOnRequest) {
  std::string nodes = "id,note,label\n";
  for (int i = 0; i < 20; ++i) {
    nodes += fmt::format("{},\"{} {} of the old mill\",{}\n", i,
                         i % 2 == 0 ? "red roof" : "Blue door", i, i % 2 == 0 ? "u" : "v");
  }
  folder_.put("own/nodes.csv", nodes);
  folder_.put("own/edges.csv", "src,dst\n0,1\n");
  EXPECT_THAT(load_complaint(folder_ / "own"),
              AllOf(HasSubstr("data.ignore=note"), HasSubstr("data.text=note")));
  const Dataset dataset = load(folder_ / "own", {.text = "note"});
  const NodeData& data = nodes_of(dataset);
  ASSERT_EQ(data.features.columns, 128);
  const auto likeness = [&](int a, int b) {
    double sum = 0.0;
    for (int k = 0; k < 128; ++k) {
      sum += static_cast<double>(data.features.values[a * 128 + k]) *
             data.features.values[b * 128 + k];
    }
    return sum;
  };
  EXPECT_NEAR(likeness(3, 3), 1.0, 1e-5);
  EXPECT_GT(likeness(2, 4), likeness(2, 5) + 0.1);
  EXPECT_THAT(dataset.columns.at(0).encoding, HasSubstr("hashed to 128"));
  const Dataset again = load(folder_ / "own", {.columns = &data.columns});
  EXPECT_EQ(nodes_of(again).features.values, data.features.values);
}

}  // namespace
}  // namespace mpssm::data
