// SPDX-License-Identifier: MIT
// One graph as arrays.
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

// Six nodes in a row, two classes, two splits.
Arrays good() {
  return {{"node_features", floats({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, {6, 2})},
          {"node_labels", integers({0, 1, 0, 1, 0, 1})},
          {"edges", integers({0, 1, 1, 2, 2, 3, 3, 4, 4, 5}, {5, 2})},
          {"train_masks", integers({1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1}, {2, 6})},
          {"val_masks", integers({0, 0, 1, 1, 0, 0, 0, 0, 1, 1, 0, 0}, {2, 6})},
          {"test_masks", integers({0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0}, {2, 6})}};
}

class NodeNpz : public ::testing::Test {
 protected:
  Dataset load_arrays(const Arrays& arrays, const LoadOptions& options = {}) {
    io::write_npz(folder_ / "d.npz", arrays);
    return load(folder_ / "d.npz", options);
  }
  std::string message_of(const std::string& name, const io::Array& array) {
    Arrays arrays = good();
    arrays[name] = array;
    return testing::message_of([&] { load_arrays(arrays); });
  }
  std::string complaint_without(const std::string& name) {
    Arrays arrays = good();
    arrays.erase(name);
    return testing::message_of([&] { load_arrays(arrays); });
  }

  Scratch folder_;
};

TEST_F(NodeNpz, BecomesNodeData) {
  const Dataset dataset = load_arrays(good());
  EXPECT_EQ(dataset.name, "d");
  EXPECT_EQ(dataset.task, Task::kNodeBinary);
  EXPECT_EQ(dataset.metric, "roc_auc");
  EXPECT_TRUE(dataset.notes.empty());
  const auto& data = std::get<NodeData>(dataset.content);
  EXPECT_EQ(data.graph.num_edges(), 5);
  EXPECT_TRUE(data.graph.is_symmetric());
  EXPECT_EQ(data.features.columns, 2);
  EXPECT_THAT(data.target, ElementsAre(0, 1, 0, 1, 0, 1));
  EXPECT_THAT(data.class_names, ElementsAre("0", "1"));
  ASSERT_EQ(data.splits.size(), 2u);
  EXPECT_EQ(data.splits[1][0], Part::kTest);
}

// Each of these compresses to less than 100 kB and would become 0.7 to 1.1 GB, and ten times as
// many numbers ten times that.
TEST_F(NodeNpz, SmallFilesMayNotBecomeLargeGraphs) {
  constexpr std::int64_t kMany = 12'000'000;
  Arrays arrays = good();
  arrays["edges"] = testing::bytes(2 * kMany, 0, {kMany, 2});
  const auto complaint = [&] { return testing::message_of([&] { load_arrays(arrays); }); };
  EXPECT_THAT(complaint(), AllOf(HasSubstr("array 'edges'"), HasSubstr(" to become at most ")));
  arrays = good();
  arrays["node_features"] = testing::bytes(kMany, 1, {kMany, 1});
  EXPECT_THAT(complaint(), AllOf(HasSubstr("array 'edges'"), HasSubstr(" to become at most ")));
  arrays = good();
  for (const char* name : {"class_names", "node_ids"}) {
    EXPECT_THAT(message_of(name, testing::bytes(kMany, 0)),
                AllOf(HasSubstr(name), HasSubstr(" to become at most ")));
  }
  EXPECT_THAT(message_of("train_masks", testing::bytes(3 * kMany, 0, {kMany / 2, 6})),
              AllOf(HasSubstr("'train_masks'"), HasSubstr(" to become at most ")));
}

TEST_F(NodeNpz, FloatLabelsAreARegressionAndNanIsNone) {
  Arrays arrays = good();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  arrays["node_labels"] = floats({0, nan, 0, 1, 2, 1});
  const Dataset dataset = load_arrays(arrays);
  EXPECT_EQ(dataset.task, Task::kNodeRegression);
  EXPECT_EQ(std::get<NodeData>(dataset.content).splits[0][1], Part::kNone);
}

TEST_F(NodeNpz, MasksOfOneSplitAreTheSplit) {
  Arrays arrays = good();
  for (const char* name : {"train_masks", "val_masks", "test_masks"}) arrays.erase(name);
  arrays["train_mask"] = integers({1, 1, 0, 0, 0, 0});
  arrays["val_mask"] = integers({0, 0, 1, 1, 0, 0});
  arrays["test_mask"] = integers({0, 0, 0, 0, 1, 1});
  const Dataset dataset = load_arrays(arrays);
  const auto& data = std::get<NodeData>(dataset.content);
  ASSERT_EQ(data.splits.size(), 1u);
  EXPECT_THAT(data.splits[0], ElementsAre(Part::kTrain, Part::kTrain, Part::kVal, Part::kVal,
                                          Part::kTest, Part::kTest));
  EXPECT_EQ(dataset.protocol, "1 stored split(s)");
  EXPECT_TRUE(dataset.notes.empty());
  const auto complaint = [&] { return testing::message_of([&] { load_arrays(arrays); }); };
  arrays["test_mask"] = integers({1, 0, 0, 0, 1, 1});
  EXPECT_THAT(complaint(), AllOf(HasSubstr("'test_mask'"), HasSubstr("[0]"), HasSubstr("train")));
  arrays.erase("test_mask");
  EXPECT_THAT(complaint(), HasSubstr("'test_mask'"));
  arrays["test_mask"] = integers({0, 0, 0, 0, 1, 1}, {1, 6});
  EXPECT_THAT(complaint(), AllOf(HasSubstr("'test_mask'"), HasSubstr("[1, 6]")));
  // A mask without the others is no reason for a random split.
  Arrays lonely = good();
  for (const char* name : {"train_masks", "val_masks"}) lonely.erase(name);
  EXPECT_THAT(testing::message_of([&] { load_arrays(lonely); }), HasSubstr("'train_masks'"));
}

TEST_F(NodeNpz, SaysWhichArraysAreNotUsed) {
  Arrays arrays = good();
  arrays["edge_feat"] = floats({1, 2, 3, 4, 5});
  arrays["train_mask"] = integers({1, 1, 0, 0, 0, 0});
  EXPECT_THAT(load_arrays(arrays).notes,
              ElementsAre(AllOf(HasSubstr("d.npz"), HasSubstr("not used"), HasSubstr("'edge_feat'"),
                                HasSubstr("'train_mask'"))));
}

TEST_F(NodeNpz, RefusesSettingsThatMeanNothingToIt) {
  const auto complaint = [&](const LoadOptions& options) {
    return testing::message_of([&] { load_arrays(good(), options); });
  };
  EXPECT_THAT(complaint({.target = "height"}),
              AllOf(HasSubstr("data.target"), HasSubstr("'height'"), HasSubstr("'node_labels'")));
  EXPECT_THAT(complaint({.lags = 3}), AllOf(HasSubstr("data.lags"), HasSubstr("no series")));
  EXPECT_THAT(complaint({.horizon = 3}), HasSubstr("data.horizon"));
  EXPECT_THAT(complaint({.train_ratio = 0.5}), HasSubstr("data.train_ratio"));
  EXPECT_THAT(load_arrays(good(), {.split_seed = 7, .make_seed = 8}).notes,
              ElementsAre(HasSubstr("data.split_seed is not used"),
                          HasSubstr("data.make_seed is not used")));
  load_arrays(good(), {.target = "label", .directed = EdgeUse::kForward});
}

TEST_F(NodeNpz, NamesOtherThanUtf8AreRefused) {
  const std::vector<std::uint8_t> names = {'a', 0, 'b', 0xFF, 0};
  EXPECT_THAT(message_of("class_names", testing::array(names)),
              AllOf(HasSubstr("'class_names'"), HasSubstr("name 1"), HasSubstr("'b\\xff'")));
}

TEST_F(NodeNpz, WeightsTooLargeForFloatsNameTheFile) {
  EXPECT_THAT(message_of("weights", testing::array<double>({1, 1e308, 1, 1, 1})),
              AllOf(HasSubstr("d.npz"), HasSubstr("node 1"), HasSubstr("1e+308")));
  // Each fits, their sum does not.
  EXPECT_THAT(message_of("weights", testing::array<double>({1, 3e38, 3e38, 1, 1})),
              AllOf(HasSubstr("node 2"), HasSubstr("6e+38")));
}

TEST_F(NodeNpz, WithoutMasksIsSplitAtRandom) {
  Arrays arrays = good();
  for (const char* name : {"train_masks", "val_masks", "test_masks"}) arrays.erase(name);
  const Dataset dataset = load_arrays(arrays);
  EXPECT_EQ(std::get<NodeData>(dataset.content).splits.size(), 1u);
  EXPECT_THAT(dataset.protocol, HasSubstr("random 50/25/25"));
}

TEST_F(NodeNpz, MinusOneIsNoLabel) {
  Arrays arrays = good();
  arrays["node_labels"] = integers({0, 1, -1, 1, 0, 1});
  const auto data = std::get<NodeData>(load_arrays(arrays).content);
  EXPECT_TRUE(std::isnan(data.target[2]));
  EXPECT_EQ(data.splits[0][2], Part::kNone);
}

TEST_F(NodeNpz, LabelsMayBeAbsentForPrediction) {
  Arrays arrays = good();
  arrays.erase("node_labels");
  arrays.erase("train_masks");
  const std::vector<Column> columns;
  const std::vector<std::string> classes = {"u", "v", "w"};
  const Dataset dataset = load_arrays(arrays, {.columns = &columns, .class_names = &classes});
  EXPECT_EQ(dataset.task, Task::kNodeClasses);
  EXPECT_TRUE(std::isnan(std::get<NodeData>(dataset.content).target[0]));
}

TEST_F(NodeNpz, EdgesOutOfRangeAreNamedWithTheirPosition) {
  EXPECT_THAT(message_of("edges", integers({0, 1, 1, 6}, {2, 2})),
              AllOf(HasSubstr("'edges': [1, 1]"), HasSubstr("[0, 6), got 6")));
  EXPECT_THAT(message_of("edges", integers({0, 1, -3, 2}, {2, 2})),
              AllOf(HasSubstr("'edges': [1, 0]"), HasSubstr("got -3")));
}

TEST_F(NodeNpz, WeightsMustFitTheEdges) {
  EXPECT_THAT(message_of("weights", floats({1, 2})), HasSubstr("'weights'"));
  EXPECT_THAT(message_of("weights", testing::array<double>(
                                        {1, 2, 3, 4, std::numeric_limits<double>::infinity()})),
              HasSubstr("finite weight"));
}

TEST_F(NodeNpz, LabelsOutOfRangeAreNamed) {
  EXPECT_THAT(message_of("node_labels", integers({0, 1, 0, -2, 0, 1})),
              AllOf(HasSubstr("'node_labels': [3]"), HasSubstr("got -2")));
  EXPECT_THAT(message_of("node_labels", integers({0, 1, 0, 4000000000000, 0, 1})),
              HasSubstr("got 4000000000000"));
}

TEST_F(NodeNpz, OneClassIsRefused) {
  EXPECT_THAT(message_of("node_labels", integers({0, 0, 0, 0, 0, 0})),
              HasSubstr("at least two classes, got 1"));
}

TEST_F(NodeNpz, InfiniteLabelIsRefused) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_THAT(message_of("node_labels", floats({0, 0, infinity, 0, 0, 0})),
              HasSubstr("'node_labels': [2]"));
}

TEST_F(NodeNpz, OverlappingMasksAreNamed) {
  EXPECT_THAT(message_of("val_masks", integers({0, 1, 1, 1, 0, 0, 0, 0, 1, 1, 0, 0}, {2, 6})),
              AllOf(HasSubstr("'val_masks': [0, 1]"), HasSubstr("got it in train too")));
}

TEST_F(NodeNpz, MasksMustBeZeroOrOne) {
  EXPECT_THAT(message_of("train_masks", integers({7, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1}, {2, 6})),
              AllOf(HasSubstr("[0, 0]"), HasSubstr("0 or 1, got 7")));
}

TEST_F(NodeNpz, MasksOfAnotherShapeAreRefused) {
  EXPECT_THAT(message_of("val_masks", integers({0, 0, 1, 1, 0, 0}, {1, 6})),
              HasSubstr("val_masks"));
  EXPECT_THAT(message_of("train_masks", integers({}, {0, 6})), HasSubstr("at least one split"));
  EXPECT_THAT(complaint_without("test_masks"), HasSubstr("test_masks"));
}

TEST_F(NodeNpz, EmptyPartIsNamed) {
  EXPECT_THAT(message_of("val_masks", integers({0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0}, {2, 6})),
              AllOf(HasSubstr("split 1"), HasSubstr("in val, got none")));
}

TEST_F(NodeNpz, ClassMissingInTrainNamesSplitAndClass) {
  EXPECT_THAT(message_of("node_labels", integers({0, 1, 0, 1, 1, 1})),
              AllOf(HasSubstr("split 1"), HasSubstr("class '0' is missing in train")));
}

TEST_F(NodeNpz, MissingArraysAreNamed) {
  EXPECT_THAT(complaint_without("node_labels"), HasSubstr("'node_labels'"));
  EXPECT_THAT(complaint_without("edges"), HasSubstr("'edges' or 'edge_index'"));
  EXPECT_THAT(complaint_without("node_features"), HasSubstr("expected arrays"));
}

TEST_F(NodeNpz, NoNodesAreRefused) {
  EXPECT_THAT(message_of("node_features", floats({}, {0, 2})), HasSubstr("at least one node"));
}

TEST_F(NodeNpz, FeaturesMustBeFinite) {
  EXPECT_THAT(message_of("node_features", floats({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11,
                                                  std::numeric_limits<float>::quiet_NaN()},
                                                 {6, 2})),
              HasSubstr("node_features"));
}

TEST_F(NodeNpz, NamesMustFitTheirNumber) {
  EXPECT_THAT(message_of("class_names", testing::array<std::uint8_t>({'a', 0})),
              HasSubstr("at least 2 names, got 1"));
  EXPECT_THAT(message_of("node_ids", testing::array<std::uint8_t>({'a', 0, 'b'})),
              HasSubstr("6 names, each ended by a 0"));
  EXPECT_THAT(message_of("task", testing::array<std::uint8_t>({'a', 0})), HasSubstr("node_binary"));
}

}  // namespace
}  // namespace mpssm::data
