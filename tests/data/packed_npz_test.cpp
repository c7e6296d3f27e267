// SPDX-License-Identifier: MIT
// Many graphs as arrays, and datasets written and read back.
#include <cmath>
#include <limits>

#include "tests/data/files.h"

namespace mpssm::data {
namespace {

using ::testing::AllOf;
using testing::Arrays;
using ::testing::ElementsAre;
using testing::floats;
using ::testing::HasSubstr;
using testing::integers;
using testing::Scratch;

// Three graphs of 2, 3 and 1 nodes.
Arrays good_graphs() {
  return {{"node_ptr", integers({0, 2, 5, 6})},
          {"edge_ptr", integers({0, 2, 6, 6})},
          {"edge_src", integers({0, 1, 0, 1, 1, 2})},
          {"edge_dst", integers({1, 0, 1, 0, 2, 1})},
          {"node_features", floats({1, 2, 3, 4, 5, 6}, {6, 1})},
          {"labels", integers({1, 0, 0, 1, 1, 1}, {3, 2})},
          {"split", integers({0, 1, 2})}};
}

class PackedNpz : public ::testing::Test {
 protected:
  Dataset load_arrays(const Arrays& arrays, const LoadOptions& options = {}) {
    io::write_npz(folder_ / "g.npz", arrays);
    return load(folder_ / "g.npz", options);
  }
  Dataset load_with(const std::string& name, const io::Array& array,
                    const LoadOptions& options = {}) {
    Arrays arrays = good_graphs();
    arrays[name] = array;
    return load_arrays(arrays, options);
  }
  std::string message_of(const std::string& name, const io::Array& array,
                         const LoadOptions& options = {}) {
    return testing::message_of([&] { load_with(name, array, options); });
  }

  Scratch folder_;
};

const GraphsData& graphs_of(const Dataset& dataset) {
  return std::get<GraphsData>(dataset.content);
}

TEST_F(PackedNpz, BecomesGraphsWithLabels) {
  const Dataset dataset = load_arrays(good_graphs());
  EXPECT_EQ(dataset.task, Task::kGraphLabels);
  EXPECT_EQ(dataset.metric, "average_precision");
  EXPECT_TRUE(dataset.notes.empty());
  const GraphsData& data = graphs_of(dataset);
  EXPECT_EQ(data.num_graphs(), 3);
  EXPECT_THAT(data.edge_dst, ElementsAre(1, 0, 1, 0, 2, 1));
  EXPECT_THAT(data.part, ElementsAre(Part::kTrain, Part::kVal, Part::kTest));
  EXPECT_THAT(data.target_names, ElementsAre("labels0", "labels1"));
  EXPECT_EQ(data.label_scale, 1.0);
}

TEST_F(PackedNpz, ScalesOwnLabelsByThoseOfTheTrainingGraphsAlone) {
  // Graphs of 2 (training), 3 and 1 nodes: what the others hold is not looked at.
  EXPECT_EQ(graphs_of(load_with("labels", floats({-4, 100, 200}))).label_scale, 4.0);
  EXPECT_EQ(graphs_of(load_with("labels", floats({2, -3, 50, 60, 70, 80}))).label_scale, 3.0);
  EXPECT_EQ(graphs_of(load_with("labels", floats({0, 5, 5}))).label_scale, 1.0);
}

// Graphs of 2 (training), 3 and 1 nodes: each class has to be in training.
TEST_F(PackedNpz, WholeNumbersOfGraphsAndNodesAreClasses) {
  Arrays arrays = good_graphs();
  arrays["labels"] = integers({0, 1, 2, 0, -1, 1});
  Dataset dataset = load_arrays(arrays);
  EXPECT_EQ(dataset.task, Task::kNodeClasses);
  EXPECT_THAT(graphs_of(dataset).class_names, ElementsAre("0", "1", "2"));
  EXPECT_TRUE(std::isnan(graphs_of(dataset).target.values[4]));
  EXPECT_EQ(graphs_of(dataset).label_scale, 1.0);
  arrays["labels"] = integers({1, 0, 1});
  EXPECT_THAT(testing::message_of([&] { load_arrays(arrays); }),
              HasSubstr("class '0' is missing in train"));
  EXPECT_EQ(load_arrays(arrays, {.task = Task::kGraphRegression}).task, Task::kGraphRegression);
  arrays["split"] = integers({0, 0, 2});
  EXPECT_THAT(testing::message_of([&] { load_arrays(arrays); }), HasSubstr("in val, got none"));
  const std::vector<std::string> names = {"0", "1"};
  const std::vector<Column> none;
  const LoadOptions options{.task = Task::kGraphBinary, .columns = &none, .class_names = &names};
  EXPECT_EQ(load_arrays(arrays, options).task, Task::kGraphBinary);
  arrays["labels"] = integers({0, 1, 7});
  EXPECT_THAT(testing::message_of([&] { load_arrays(arrays, options); }),
              HasSubstr("[2]: expected a class in [0, 2) or -1 (none), got 7"));
}

TEST_F(PackedNpz, FloatsAreARegressionOfGraphsOrNodes) {
  Dataset dataset = load_with("labels", floats({1, 0, 1}));
  EXPECT_EQ(dataset.task, Task::kGraphRegression);
  EXPECT_EQ(graphs_of(dataset).target.columns, 1);
  dataset = load_with("labels", floats({1, 0, 1, 2, 3, 4}));
  EXPECT_EQ(dataset.task, Task::kNodeRegression);
  EXPECT_EQ(graphs_of(dataset).target.rows, 6);
  dataset = load_with("labels", floats({1, 0, 1}), {.task = Task::kGraphLabels});
  EXPECT_EQ(dataset.task, Task::kGraphLabels);
}

TEST_F(PackedNpz, TargetArrayCanBeNamed) {
  const Dataset dataset = load_with("height", floats({1, 2, 3}), {.target = "height"});
  EXPECT_THAT(graphs_of(dataset).target.values, ElementsAre(1, 2, 3));
  EXPECT_THAT(graphs_of(dataset).target_names, ElementsAre("height"));
}

TEST_F(PackedNpz, CodesGetTheVocabularyTheyNeed) {
  const Dataset dataset = load_with(
      "atom_feat", testing::array<std::uint8_t>({0, 1, 2, 3, 0, 0, 7, 0, 1, 1, 0, 9}, {6, 2}));
  EXPECT_THAT(graphs_of(dataset).vocabulary, ElementsAre(8, 10));
  EXPECT_EQ(graphs_of(dataset).codes[6], 7);
}

TEST_F(PackedNpz, WithoutASplitGetsOne) {
  Arrays arrays = good_graphs();
  arrays.erase("split");
  EXPECT_THAT(graphs_of(load_arrays(arrays)).part,
              ::testing::UnorderedElementsAre(Part::kTrain, Part::kVal, Part::kTest));
}

TEST_F(PackedNpz, OneWayEdgesAreANote) {
  EXPECT_THAT(load_with("edge_dst", integers({1, 1, 1, 0, 2, 1})).notes,
              ElementsAre(HasSubstr("one way")));
}

TEST_F(PackedNpz, PointersMustStartAtZero) {
  EXPECT_THAT(message_of("node_ptr", integers({1, 2, 5, 6})),
              AllOf(HasSubstr("'node_ptr': [0]"), HasSubstr("expected 0, got 1")));
  EXPECT_THAT(message_of("node_ptr", integers({0})), HasSubstr("1 number(s)"));
}

TEST_F(PackedNpz, PointersMustNotFall) {
  EXPECT_THAT(message_of("edge_ptr", integers({0, 4, 2, 6})),
              AllOf(HasSubstr("'edge_ptr': [2]"), HasSubstr("at least 4 as before it, got 2")));
}

TEST_F(PackedNpz, PointersMustEndAtTheArrays) {
  EXPECT_THAT(message_of("edge_ptr", integers({0, 2, 6, 7})), HasSubstr("edge_src"));
  EXPECT_THAT(message_of("node_ptr", integers({0, 2, 5, 9})), HasSubstr("node_features"));
  EXPECT_THAT(message_of("node_ptr", integers({0, 2, 5, std::int64_t{1} << 62})),
              HasSubstr("node"));
}

TEST_F(PackedNpz, PointersMustBeEquallyMany) {
  EXPECT_THAT(message_of("edge_ptr", integers({0, 2, 6})), HasSubstr("expected 4 numbers"));
}

TEST_F(PackedNpz, EmptyGraphIsRefused) {
  EXPECT_THAT(message_of("node_ptr", integers({0, 0, 5, 6})),
              HasSubstr("at least one node in graph 0"));
}

TEST_F(PackedNpz, EndsMustStayInTheirGraph) {
  EXPECT_THAT(message_of("edge_src", integers({0, 2, 0, 1, 1, 2})),
              AllOf(HasSubstr("'edge_src': [1] in graph 0"), HasSubstr("[0, 2), got 2")));
  EXPECT_THAT(message_of("edge_dst", integers({1, 0, 1, 0, -1, 1})),
              AllOf(HasSubstr("'edge_dst': [4] in graph 1"), HasSubstr("got -1")));
}

TEST_F(PackedNpz, UnknownPartIsRefused) {
  EXPECT_THAT(message_of("split", integers({0, 1, 4})),
              AllOf(HasSubstr("'split': [2]"), HasSubstr("got 4")));
  EXPECT_THAT(message_of("split", integers({0, 1, 1})), HasSubstr("one graph in test"));
}

TEST_F(PackedNpz, LabelsMustFitGraphsOrNodes) {
  EXPECT_THAT(message_of("labels", floats({1, 2, 3, 4})),
              HasSubstr("each of 3 graphs or one number for each of 6 nodes"));
  EXPECT_THAT(message_of("labels", floats({1, 2, std::numeric_limits<float>::quiet_NaN()})),
              HasSubstr("labels"));
}

TEST_F(PackedNpz, MissingTargetListsTheArrays) {
  EXPECT_THAT(message_of("x", floats({1}), {.target = "y"}),
              AllOf(HasSubstr("in an array 'y'"), HasSubstr("node_ptr"), HasSubstr("data.target")));
}

TEST_F(PackedNpz, ImpossibleTaskIsRefused) {
  EXPECT_THAT(message_of("labels", floats({1, 2, 3}), {.task = Task::kGraphLabels}),
              HasSubstr("task graph_labels"));
  EXPECT_THAT(message_of("labels", floats({1, 2, 3}), {.task = Task::kNodeClasses}),
              HasSubstr("task node_classes"));
}

TEST_F(PackedNpz, CodesMustBeBytesInsideTheVocabulary) {
  EXPECT_THAT(message_of("atom_feat", integers({0, 1, 2, 3, 4, 5}, {6, 1})),
              HasSubstr("expected uint8 codes"));
  Arrays arrays = good_graphs();
  arrays["atom_feat"] = testing::array<std::uint8_t>({0, 1, 2, 3, 4, 5}, {6, 1});
  arrays["vocabulary"] = integers({5});
  EXPECT_THAT(testing::message_of([&] { load_arrays(arrays); }),
              HasSubstr("column 0: expected codes below 5, got 5"));
}

TEST_F(PackedNpz, FeaturesMustBeThere) {
  Arrays arrays = good_graphs();
  arrays.erase("node_features");
  EXPECT_THAT(testing::message_of([&] { load_arrays(arrays); }), HasSubstr("got neither"));
}

TEST_F(PackedNpz, ScaleMustBePositive) {
  EXPECT_THAT(message_of("label_scale", floats({-1})), HasSubstr("a number above 0"));
}

TEST_F(PackedNpz, ComesBackFromAFile) {
  for (const char* name : {"properties:diameter:8", "properties:sssp:8"}) {
    const Dataset made = load(name);
    save_npz(folder_ / "saved.npz", made);
    const Dataset read = load(folder_ / "saved.npz");
    EXPECT_EQ(read.task, made.task);
    EXPECT_EQ(read.metric, made.metric);
    const GraphsData& a = graphs_of(made);
    const GraphsData& b = graphs_of(read);
    EXPECT_EQ(a.node_ptr, b.node_ptr);
    EXPECT_EQ(a.edge_ptr, b.edge_ptr);
    EXPECT_EQ(a.edge_src, b.edge_src);
    EXPECT_EQ(a.edge_dst, b.edge_dst);
    EXPECT_EQ(a.features.values, b.features.values);
    EXPECT_EQ(a.target.values, b.target.values);
    EXPECT_EQ(a.target_names, b.target_names);
    EXPECT_EQ(a.part, b.part);
    EXPECT_EQ(a.label_scale, b.label_scale);
  }
}

TEST_F(PackedNpz, CodesComeBackFromAFile) {
  Dataset made = load_with("atom_feat", testing::array<std::uint8_t>({0, 1, 2, 3, 4, 5}, {6, 1}));
  std::get<GraphsData>(made.content).vocabulary = {119};
  save_npz(folder_ / "saved.npz", made);
  const Dataset read = load(folder_ / "saved.npz");
  EXPECT_EQ(read.task, Task::kGraphLabels);
  EXPECT_EQ(graphs_of(read).codes, graphs_of(made).codes);
  EXPECT_THAT(graphs_of(read).vocabulary, ElementsAre(119));
}

TEST(SaveNpz, NodeDataComesBackFromAFile) {
  const Scratch folder;
  folder.put("t/nodes.csv",
             "id,x,label,split\n\"a,1\",1,\xc3\xa9t\xc3\xa9,0\nb,2,v,0\nc,3,v,1\nd,4,v,2\ne,4,,\n");
  folder.put("t/edges.csv", "src,dst,weight\n\"a,1\",b,0.1\nc,b,0.3\nd,d,-7\n");
  for (const bool directed : {false, true}) {
    const Dataset made = load(
        folder / "t",
        {.task = Task::kNodeClasses, .directed = directed ? EdgeUse::kForward : EdgeUse::kBoth});
    save_npz(folder / "saved.npz", made);
    const Dataset read = load(folder / "saved.npz");
    EXPECT_EQ(read.task, Task::kNodeClasses);
    const auto& a = std::get<NodeData>(made.content);
    const auto& b = std::get<NodeData>(read.content);
    EXPECT_EQ(a.features.values, b.features.values);
    EXPECT_EQ(a.class_names, b.class_names);
    EXPECT_EQ(a.node_ids, b.node_ids);
    EXPECT_EQ(a.splits, b.splits);
    EXPECT_THAT(b.target, ElementsAre(1, 0, 0, 0, ::testing::IsNan()));
    EXPECT_TRUE(std::equal(a.graph.col().begin(), a.graph.col().end(), b.graph.col().begin()));
    EXPECT_THAT(std::vector<double>(b.graph.weight().begin(), b.graph.weight().end()),
                ::testing::ElementsAreArray(a.graph.weight()));
    EXPECT_EQ(b.graph.is_symmetric(), !directed);
  }
}

TEST_F(PackedNpz, SaysWhatIsNotUsedAndRefusesWhatMeansNothing) {
  EXPECT_THAT(load_with("weights", floats({1, 1, 1, 1, 1, 1})).notes,
              ElementsAre(AllOf(HasSubstr("not used"), HasSubstr("'weights'"))));
  const auto complaint = [&](const LoadOptions& options) {
    return testing::message_of([&] { load_arrays(good_graphs(), options); });
  };
  EXPECT_THAT(complaint({.directed = EdgeUse::kForward}), HasSubstr("data.directed"));
  EXPECT_THAT(complaint({.lags = 2}), HasSubstr("data.lags"));
}

TEST_F(PackedNpz, SmallFilesMayNotBecomeLargeOnes) {
  constexpr std::int64_t kMany = 12'000'000;
  const auto too_large = HasSubstr(" to become at most ");
  // One graph with that many edges, of that many nodes, with that many columns of codes.
  Arrays arrays = {{"node_ptr", integers({0, 1})},
                   {"edge_ptr", integers({0, kMany})},
                   {"edge_src", testing::bytes(kMany, 0)},
                   {"edge_dst", testing::bytes(kMany, 0)},
                   {"node_features", testing::bytes(1, 0, {1, 1})},
                   {"labels", floats({1})}};
  const auto complaint = [&] { return testing::message_of([&] { load_arrays(arrays); }); };
  EXPECT_THAT(complaint(), too_large);
  arrays["edge_ptr"] = integers({0, 0});
  arrays["edge_src"] = arrays["edge_dst"] = integers({}, {0});
  arrays["node_ptr"] = integers({0, kMany});
  arrays["node_features"] = testing::bytes(kMany, 0, {kMany, 1});
  EXPECT_THAT(complaint(), too_large);
  arrays["node_ptr"] = integers({0, 1});
  arrays["atom_feat"] = testing::bytes(kMany, 0, {1, kMany});
  EXPECT_THAT(complaint(), AllOf(HasSubstr("'atom_feat'"), too_large));
}

}  // namespace
}  // namespace mpssm::data
