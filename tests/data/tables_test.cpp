// SPDX-License-Identifier: MIT
// nodes.csv and edges.csv: what they become, and what is said about bad ones.
#include <cmath>

#include "tests/data/files.h"

namespace mpssm::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::load_complaint;
using testing::Scratch;

constexpr const char* kEdges = "src,dst\na,b\nb,c\nc,d\n";
constexpr const char* kNoEdges = "src,dst\n";
constexpr const char* kNodes =
    "id,age,kind,label,split\n"
    "a,1,red,yes,train\n"
    "b,2,blue,no,train\n"
    "c,3,red,yes,val\n"
    "d,4,,no,test\n";

class Tables : public ::testing::Test {
 protected:
  Dataset load_tables(const std::string& nodes, const std::string& edges = kEdges,
                      const LoadOptions& options = {}) {
    folder_.put("people/nodes.csv", nodes);
    folder_.put("people/edges.csv", edges);
    return load(folder_ / "people", options);
  }
  std::string message_of(const std::string& nodes, const std::string& edges = kEdges,
                         const LoadOptions& options = {}) {
    return testing::message_of([&] { load_tables(nodes, edges, options); });
  }

  Scratch folder_;
};

const NodeData& nodes_of(const Dataset& dataset) { return std::get<NodeData>(dataset.content); }

// Eight nodes in a row, with the given cells in column 'label'.
std::string nodes_with_labels(const std::vector<std::string>& labels) {
  std::string text = "id,x,label\n";
  const std::string ids = "abcdefghijklmnop";
  for (std::size_t i = 0; i < labels.size(); ++i) {
    text += std::string(1, ids[i]) + "," + std::to_string(i * i) + "," + labels[i] + "\n";
  }
  return text;
}

TEST_F(Tables, BecomeAGraphWithFeaturesLabelsAndSplit) {
  const Dataset dataset = load_tables(kNodes);
  EXPECT_EQ(dataset.name, "people");
  EXPECT_EQ(dataset.task, Task::kNodeBinary);
  EXPECT_EQ(dataset.metric, "roc_auc");
  const NodeData& data = nodes_of(dataset);
  EXPECT_THAT(data.node_ids, ElementsAre("a", "b", "c", "d"));
  EXPECT_EQ(data.graph.num_edges(), 3);
  EXPECT_FALSE(data.graph.is_weighted());
  EXPECT_THAT(data.class_names, ElementsAre("no", "yes"));
  EXPECT_THAT(data.target, ElementsAre(1, 0, 1, 0));
  EXPECT_THAT(data.splits,
              ElementsAre(ElementsAre(Part::kTrain, Part::kTrain, Part::kVal, Part::kTest)));
  EXPECT_EQ(data.features.rows, 4);
  EXPECT_EQ(data.features.columns, 3);
  // By mean and deviation of the rows of train; the cell that is missing in test is one of the two
  // values, as the more frequent one would be.
  EXPECT_THAT(data.features.values, ElementsAre(-1, 0, 1, 1, 1, 0, 3, 0, 1, 5, 1, 0));
  ASSERT_EQ(data.columns.size(), 2u);
  EXPECT_EQ(data.columns[0].mean, 1.5);
  EXPECT_EQ(data.columns[0].scale, 0.5);
  EXPECT_THAT(data.columns[1].categories, ElementsAre("blue", "red"));
}

TEST_F(Tables, AreAlsoFoundByTheirFiles) {
  load_tables(kNodes);
  EXPECT_EQ(nodes_of(load(folder_ / "people/nodes.csv")).graph.num_edges(), 3);
  EXPECT_EQ(nodes_of(load(folder_ / "people/edges.csv")).graph.num_edges(), 3);
  EXPECT_EQ(load((folder_ / "people/").string()).name, "people");
}

TEST_F(Tables, EdgesMayHaveWeightsAndOneDirection) {
  const Dataset dataset =
      load_tables(kNodes, "from;to;weight\na;b;0.5\nb;a;2\n", {.directed = EdgeUse::kForward});
  EXPECT_TRUE(nodes_of(dataset).graph.is_weighted());
  EXPECT_THAT(nodes_of(dataset).graph.weight(), ElementsAre(2.0, 0.5));
  EXPECT_FALSE(nodes_of(dataset).graph.is_symmetric());
}

TEST_F(Tables, MessagesMayRunBackwards) {
  const auto received = [&](EdgeUse use) {
    const Dataset dataset = load_tables(kNodes, "src,dst\na,b\n", {.directed = use});
    const auto row_ptr = nodes_of(dataset).graph.row_ptr();
    return std::vector<std::int64_t>(row_ptr.begin(), row_ptr.end());
  };
  EXPECT_THAT(received(EdgeUse::kForward), ElementsAre(0, 0, 1, 1, 1));
  EXPECT_THAT(received(EdgeUse::kBackward), ElementsAre(0, 1, 1, 1, 1));
  EXPECT_THAT(received(EdgeUse::kBoth), ElementsAre(0, 1, 2, 2, 2));
}

TEST_F(Tables, SaysWhichColumnsAndTablesAreNotUsed) {
  EXPECT_THAT(load_tables(kNodes).notes, ::testing::Each(::testing::Not(HasSubstr("not used"))));
  folder_.put("people/more.csv", "graph,label\n1,2\n");
  EXPECT_THAT(
      load_tables(kNodes, "src,dst,since,weight,kind\na,b,1990,1,x\n").notes,
      ::testing::IsSupersetOf({HasSubstr("edges.csv: kept, used by the model with "
                                         "data.encodings=edges or model.gso only: columns 'since', "
                                         "'kind'"),
                               HasSubstr("people: not used: table 'more.csv'")}));
  EXPECT_THAT(message_of(kNodes, kEdges, {.lags = 4}), HasSubstr("data.lags"));
}

TEST_F(Tables, WeightsTooLargeForFloatsAreRefused) {
  EXPECT_THAT(message_of(kNodes, "src,dst,weight\na,b,1\nb,c,1e308\n"),
              AllOf(HasSubstr("edges.csv:3: column 'weight'"), HasSubstr("32 bits, got '1e308'")));
  EXPECT_THAT(message_of(kNodes, "src,dst,weight\na,b,-3e38\nb,c,3e38\n"),
              AllOf(HasSubstr("edges.csv: node 1"), HasSubstr("6e+38")));
}

TEST_F(Tables, FirstFaultOfTheEdgesIsTold) {
  std::string edges = "src,dst,weight\n";
  for (int row = 0; row < 100; ++row) edges += "a,b,1\n";
  EXPECT_THAT(message_of(kNodes, edges + "a,z,1\na,b\n"), HasSubstr("edges.csv:102: column 'dst'"));
  EXPECT_THAT(message_of(kNodes, edges + "a,b\na,z,1\n"), HasSubstr("edges.csv:102: expected 3"));
  EXPECT_THAT(message_of(kNodes, edges + "a,b,x\nz,b,1\n"), HasSubstr("edges.csv:102: column 'w"));
  EXPECT_THAT(message_of(kNodes, edges + "\na,b,1\n"), HasSubstr("edges.csv:102: expected 3"));
}

TEST_F(Tables, LabelsTooLargeForFloatsAreRefused) {
  EXPECT_THAT(message_of("id,x,label\na,1,0.5\nb,2,1e308\nc,3,0.25\nd,4,0.5\n"),
              AllOf(HasSubstr("nodes.csv:3: column 'label'"), HasSubstr("32 bits, got '1e308'")));
}

TEST_F(Tables, UnequalWeightsAreShownUnequal) {
  EXPECT_THAT(message_of(kNodes, "src,dst,weight\na,b,0.1\nb,a,0.10000000000000002\n",
                         {.directed = EdgeUse::kBoth}),
              AllOf(HasSubstr("weight 0.10000000000000002 from"), HasSubstr("but 0.1 backwards")));
}

TEST_F(Tables, ConstantAndEmptyColumnsAreLeftOutWithANote) {
  const Dataset dataset = load_tables(
      "id,x,e,k,h,label,split\na,0.1,,u,1,1,0\nb,0.1,NA,u,2,2,0\nc,0.1,-,u,3,1,1\nd,9,,v,4,2,2\n");
  EXPECT_EQ(nodes_of(dataset).features.columns, 1);
  EXPECT_THAT(dataset.notes,
              ::testing::IsSupersetOf({HasSubstr("column 'x' is not used: the same value"),
                                       HasSubstr("column 'e' is not used: no cell has a value"),
                                       HasSubstr("column 'k' is not used: the same value")}));
}

TEST_F(Tables, NumbersStayAsTheyAreOnRequest) {
  const Dataset dataset = load_tables(kNodes, kEdges, {.standardise = false});
  EXPECT_EQ(nodes_of(dataset).features.values[3 * 3], 4.0f);
}

TEST_F(Tables, SlipInANumberColumnIsNoted) {
  const std::string nodes = "id,h,label,split\na,1,1,0\nb,2.5x,2,0\nc,3,1,1\nd,4,2,2\n";
  const Dataset dataset = load_tables(nodes);
  EXPECT_THAT(nodes_of(dataset).features.values, ElementsAre(0, 0, 0, 1, 2, 0, 3, 0));
  EXPECT_THAT(dataset.notes, ::testing::Contains(HasSubstr(":3: column 'h': '2.5x' is no number")));
  EXPECT_EQ(nodes_of(load_tables(nodes, kEdges, {.categorical = "h"})).features.columns, 2);
  EXPECT_THAT(message_of(nodes, kEdges, {.numeric = "h"}), HasSubstr(":3: column 'h': expected"));
}

TEST_F(Tables, WithoutFeaturesGetTheDegree) {
  const Dataset dataset = load_tables("id,label,split\na,1,0\nb,2,0\nc,1,1\nd,2,2\n");
  EXPECT_THAT(nodes_of(dataset).features.values, ElementsAre(-1, 1, 1, -1));
  EXPECT_THAT(dataset.notes, ::testing::Contains(HasSubstr("degree")));
  const LoadOptions options{.columns = &nodes_of(dataset).columns};
  const Dataset again = load_tables("id\na\nb\nc\nd\n", kEdges, options);
  EXPECT_EQ(nodes_of(again).features.values, nodes_of(dataset).features.values);
}

TEST_F(Tables, WholeNumbersAreClassesInNumericOrder) {
  const Dataset dataset =
      load_tables(nodes_with_labels({"10", "9", "2", "10", "9", "02", "2.0", "10", "9", "2"}));
  EXPECT_EQ(dataset.task, Task::kNodeClasses);
  EXPECT_THAT(nodes_of(dataset).class_names, ElementsAre("2", "9", "10"));
  EXPECT_EQ(nodes_of(dataset).target[5], 0.0f);
}

TEST_F(Tables, FractionsAreARegression) {
  const Dataset dataset = load_tables(nodes_with_labels({"1", "2.5", "", "1", "3"}));
  EXPECT_EQ(dataset.task, Task::kNodeRegression);
  EXPECT_EQ(dataset.metric, "mae");
  EXPECT_TRUE(std::isnan(nodes_of(dataset).target[2]));
  EXPECT_EQ(nodes_of(dataset).splits[0][2], Part::kNone);
}

TEST_F(Tables, TaskCanBeChosen) {
  const std::string nodes = nodes_with_labels({"1", "2", "1", "2", "1", "2"});
  EXPECT_EQ(load_tables(nodes, kEdges, {.task = Task::kNodeRegression}).task,
            Task::kNodeRegression);
  EXPECT_EQ(load_tables(nodes, kEdges, {.task = Task::kNodeClasses}).task, Task::kNodeClasses);
}

TEST_F(Tables, RandomSplitIsStratifiedAndFollowsItsSeed) {
  std::string nodes = "id,x,label\n";
  std::string edges = "src,dst\n";
  for (int i = 0; i < 400; ++i) {
    nodes += std::to_string(i) + "," + std::to_string(i) + "," + (i % 8 == 0 ? "a" : "b") + "\n";
  }
  const auto split_of = [&](std::uint64_t seed) {
    return nodes_of(load_tables(nodes, edges, {.split_seed = seed})).splits.at(0);
  };
  const std::vector<Part> split = split_of(1);
  int counts[2][3] = {};
  for (int i = 0; i < 400; ++i) ++counts[i % 8 == 0 ? 0 : 1][static_cast<int>(split[i])];
  EXPECT_THAT(counts[0], ElementsAre(25, 13, 12));
  EXPECT_EQ(counts[1][0], 175);
  EXPECT_NEAR(counts[1][1], 87.5, 0.5);
  EXPECT_EQ(split, split_of(1));
  EXPECT_NE(split, split_of(2));
}

TEST_F(Tables, NewTableIsReadLikeTheTrainingOne) {
  const Dataset trained = load_tables(kNodes);
  const NodeData& data = nodes_of(trained);
  const LoadOptions options{.columns = &data.columns, .class_names = &data.class_names};
  const Dataset fresh =
      load_tables("kind,note,id,age\nblue,hi,a,2.5\ngreen,ho,b,4\n", "src,dst\na,b\n", options);
  EXPECT_EQ(fresh.task, Task::kNodeBinary);
  EXPECT_THAT(nodes_of(fresh).features.values,
              ::testing::Pointwise(::testing::FloatEq(), {2.0f, 1.0f, 0.0f, 5.0f, 0.0f, 0.0f}));
  EXPECT_TRUE(std::isnan(nodes_of(fresh).target[0]));
  EXPECT_THAT(nodes_of(fresh).splits, ElementsAre(ElementsAre(Part::kNone, Part::kNone)));
  EXPECT_THAT(fresh.notes,
              ElementsAre(AllOf(HasSubstr("1 cell(s)"), HasSubstr("'green': read as \"other\"")),
                          AllOf(HasSubstr("'note'"), HasSubstr("ignored"))));
}

TEST_F(Tables, NewTableWithoutAColumnIsRefused) {
  const Dataset trained = load_tables(kNodes);
  const LoadOptions options{.columns = &nodes_of(trained).columns};
  EXPECT_THAT(message_of("id,kind\na,red\nb,red\n", kNoEdges, options),
              AllOf(HasSubstr("the 2 feature columns"), HasSubstr("none named 'age'")));
}

TEST_F(Tables, NewTableWithAnUnknownClassIsRefused) {
  const Dataset trained = load_tables(kNodes);
  const LoadOptions options{.columns = &nodes_of(trained).columns,
                            .class_names = &nodes_of(trained).class_names};
  EXPECT_THAT(message_of("id,kind,age,label\na,red,1,maybe\n", kNoEdges, options),
              AllOf(HasSubstr("nodes.csv:2"), HasSubstr("2 known classes, got 'maybe'")));
}

TEST_F(Tables, UnknownIdInAnEdgeIsNamedWithItsLine) {
  EXPECT_THAT(message_of(kNodes, "src,dst\na,b\nb,zoe\n"),
              AllOf(HasSubstr("edges.csv:3"), HasSubstr("'dst'"), HasSubstr("'zoe'")));
}

TEST_F(Tables, EdgesWithoutEndsAreRefused) {
  EXPECT_THAT(message_of(kNodes, "left,right\na,b\n"),
              AllOf(HasSubstr("expected columns 'src' and 'dst'"), HasSubstr("left, right")));
}

TEST_F(Tables, WeightThatIsNoNumberIsRefused) {
  EXPECT_THAT(message_of(kNodes, "src,dst,weight\na,b,nan\n"),
              AllOf(HasSubstr("edges.csv:2"), HasSubstr("'weight'"), HasSubstr("'nan'")));
}

TEST_F(Tables, DirectionsWithDifferentWeightsMakeADirectedGraph) {
  const char* edges = "src,dst,weight\na,b,1\nb,a,2\n";
  EXPECT_THAT(message_of(kNodes, edges, {.directed = EdgeUse::kBoth}),
              AllOf(HasSubstr("edges.csv"), HasSubstr("backwards"), HasSubstr("=forward")));
  const Dataset dataset = load_tables(kNodes, edges);
  EXPECT_FALSE(nodes_of(dataset).graph.is_symmetric());
  EXPECT_THAT(dataset.notes, ::testing::Contains(HasSubstr("edges run one way")));
}

TEST_F(Tables, MissingIdColumnIsRefused) {
  EXPECT_THAT(message_of("ids,label\na,1\n"),
              AllOf(HasSubstr("expected a column 'id'"), HasSubstr("did you mean 'ids'?")));
}

TEST_F(Tables, RepeatedIdNamesBothLines) {
  EXPECT_THAT(message_of("id,label\na,1\nb,2\na,1\n"),
              AllOf(HasSubstr("nodes.csv:4"), HasSubstr("'a' again, first in line 2")));
}

TEST_F(Tables, EmptyIdIsRefused) {
  EXPECT_THAT(message_of("id,label\na,1\n,2\n"),
              AllOf(HasSubstr("nodes.csv:3"), HasSubstr("an id")));
}

TEST_F(Tables, NoNodesAreRefused) {
  EXPECT_THAT(message_of("id,label\n"), HasSubstr("at least one node"));
}

TEST_F(Tables, InfinityIsRefused) {
  for (const char* cell : {"inf", "-Infinity", "1e999"}) {
    EXPECT_THAT(message_of(std::string("id,x,label,split\na,1,u,0\nb,2,v,0\nc,") + cell +
                           ",v,1\nd,3,u,2\n"),
                AllOf(HasSubstr("nodes.csv:4"), HasSubstr("a finite number"), HasSubstr(cell)));
  }
}

TEST_F(Tables, NumbersTooLargeForFloatsAreRefused) {
  EXPECT_THAT(message_of("id,x,label,split\na,1e200,1,0\nb,1,2,0\nc,1,2,1\nd,1,2,2\n", kEdges,
                         {.standardise = false}),
              AllOf(HasSubstr("nodes.csv:2"), HasSubstr("fits 32 bits")));
  EXPECT_THAT(message_of("id,x,label,split\na,1e300,u,0\nb,-1e300,v,0\nc,1,u,1\nd,1,v,2\n"),
              HasSubstr("can be standardised"));
}

TEST_F(Tables, MissingLabelColumnSaysHowToNameIt) {
  EXPECT_THAT(message_of("id,labels\na,1\n", kNoEdges),
              AllOf(HasSubstr("expected a column 'label'"), HasSubstr("did you mean 'labels'?"),
                    HasSubstr("data.target")));
  EXPECT_THAT(message_of(kNodes, kEdges, {.target = "agee"}), HasSubstr("did you mean 'age'?"));
}

TEST_F(Tables, LabelsThatAreAllEmptyAreRefused) {
  EXPECT_THAT(message_of("id,label\na,\nb,\n", kNoEdges), HasSubstr("expected labels"));
}

TEST_F(Tables, OneClassIsRefused) {
  EXPECT_THAT(message_of(nodes_with_labels({"x", "x", "x", "x"})),
              HasSubstr("at least two classes, got 'x' only"));
}

TEST_F(Tables, TextAmongNumberLabelsIsRefused) {
  EXPECT_THAT(message_of(nodes_with_labels({"1.5", "2.5", "oops", "3"})),
              AllOf(HasSubstr("nodes.csv:4"), HasSubstr("'oops'")));
  EXPECT_THAT(message_of(nodes_with_labels({"1", "2", "inf", "1"})),
              AllOf(HasSubstr("nodes.csv:4"), HasSubstr("'inf'")));
}

TEST_F(Tables, ImpossibleTaskIsRefused) {
  const std::string text = nodes_with_labels({"u", "v", "u", "v", "u", "v"});
  EXPECT_THAT(message_of(text, kEdges, {.task = Task::kNodeRegression}),
              AllOf(HasSubstr("nodes.csv:2"), HasSubstr("expected a number")));
  EXPECT_THAT(message_of(text, kEdges, {.task = Task::kForecast}),
              AllOf(HasSubstr("task forecast"), HasSubstr("2 classes")));
  EXPECT_THAT(message_of(nodes_with_labels({"u", "v", "w", "v", "u", "w"}), kEdges,
                         {.task = Task::kNodeBinary}),
              HasSubstr("3 classes"));
}

TEST_F(Tables, TooFewLabelledNodesAreRefused) {
  EXPECT_THAT(message_of(nodes_with_labels({"1.5", "2", "", ""})),
              HasSubstr("at least 3 labelled samples"));
  EXPECT_THAT(message_of(nodes_with_labels({"u", "v", "u", ""})),
              HasSubstr("at least 4 labelled samples"));
}

TEST_F(Tables, UnknownPartIsRefused) {
  EXPECT_THAT(message_of("id,label,split\na,1,train\nb,2,later\n", kNoEdges),
              AllOf(HasSubstr("nodes.csv:3"), HasSubstr("train, val, test"), HasSubstr("'later'")));
}

TEST_F(Tables, SplitWithoutAPartNamesIt) {
  EXPECT_THAT(message_of("id,x,label,split\na,1,u,0\nb,2,v,0\nc,3,u,1\nd,3,,2\n"),
              AllOf(HasSubstr("split 0"), HasSubstr("labelled node in test")));
}

TEST_F(Tables, ClassMissingInTrainIsNamed) {
  EXPECT_THAT(message_of("id,x,label,split\na,1,u,0\nb,2,v,1\nc,3,u,1\nd,3,v,2\n"),
              AllOf(HasSubstr("split 0"), HasSubstr("class 'v' is missing in train")));
}

TEST_F(Tables, ClassMissingInValIsANote) {
  EXPECT_THAT(load_tables(kNodes).notes, ::testing::Contains(HasSubstr("'no' is missing in val")));
}

TEST_F(Tables, FolderWithoutATableSaysWhich) {
  folder_.put("half/nodes.csv", kNodes);
  EXPECT_THAT(load_complaint(folder_ / "half"), HasSubstr("got no edges.csv"));
  EXPECT_THAT(load_complaint(folder_ / "half/nodes.csv"), HasSubstr("edges.csv"));
  EXPECT_THAT(load_complaint(folder_ / "half/edges.csv"), HasSubstr("edges.csv"));
}

}  // namespace
}  // namespace mpssm::data
