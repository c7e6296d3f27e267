// SPDX-License-Identifier: MIT
// Folders of tables for many graphs and for series.
#include <cmath>

#include "mpssm/data/data_card.h"
#include "mpssm/data/period.h"
#include "mpssm/data/save_tables.h"

#include "tests/data/files.h"

namespace mpssm::data {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Scratch;

class Folders : public ::testing::Test {
 protected:
  // Three graphs of 2, 1 and 3 nodes whose rows come mixed.
  void put_graphs(const std::string& columns = "graph,id,x\n") {
    folder_.put("g/nodes.csv", columns + "b,0,5\na,0,1\na,1,2\nc,7,3\nc,8,4\nc,9,9\n");
    folder_.put("g/edges.csv", "graph,src,dst,weight\nc,7,8,2\na,1,0,3\nc,9,8,4\n");
  }
  Dataset load_graphs(const std::string& graphs, const LoadOptions& options = {}) {
    folder_.put("g/graphs.csv", graphs);
    return load(folder_ / "g", options);
  }
  static const GraphsData& graphs_of(const Dataset& dataset) {
    return std::get<GraphsData>(dataset.content);
  }
  static const SeriesData& series_of(const Dataset& dataset) {
    return std::get<SeriesData>(dataset.content);
  }

  Scratch folder_;
};

TEST_F(Folders, GraphsArePackedInTheOrderOfTheirTable) {
  put_graphs();
  const Dataset dataset =
      load_graphs("graph,label,split\na,1.5,train\nb,2,val\nc,2.5,test\n", {.standardise = false});
  const GraphsData& data = graphs_of(dataset);
  EXPECT_EQ(dataset.task, Task::kGraphRegression);
  EXPECT_THAT(data.graph_ids, ElementsAre("a", "b", "c"));
  EXPECT_THAT(data.node_ptr, ElementsAre(0, 2, 3, 6));
  EXPECT_THAT(data.node_ids, ElementsAre("0", "1", "0", "7", "8", "9"));
  EXPECT_THAT(data.features.values, ElementsAre(1, 2, 5, 3, 4, 9));
  EXPECT_THAT(data.edge_ptr, ElementsAre(0, 2, 2, 6));
  EXPECT_THAT(data.edge_src, ElementsAre(0, 1, 0, 1, 1, 2));
  EXPECT_THAT(data.edge_dst, ElementsAre(1, 0, 1, 0, 2, 1));
  EXPECT_THAT(data.edge_weight, ElementsAre(3, 3, 2, 2, 4, 4));
  EXPECT_THAT(data.part, ElementsAre(Part::kTrain, Part::kVal, Part::kTest));
  EXPECT_EQ(data.label_scale, 1.5);
  // Saved and read again it is the same.
  save_npz(folder_ / "saved.npz", dataset);
  const Dataset again = load(folder_ / "saved.npz");
  EXPECT_EQ(again.task, dataset.task);
  EXPECT_EQ(graphs_of(again).edge_weight, data.edge_weight);
  EXPECT_EQ(graphs_of(again).graph_ids, data.graph_ids);
  EXPECT_EQ(graphs_of(again).node_ids, data.node_ids);
}

TEST_F(Folders, TablesThatWereWrittenComeBack) {
  put_graphs();
  const LoadOptions raw{.standardise = false};
  const Dataset graphs = load_graphs("graph,label,split\na,1.5,train\nb,2,val\nc,2.5,test\n", raw);
  save_tables(folder_ / "graphs", graphs);
  const Dataset again = load(folder_ / "graphs", raw);
  EXPECT_EQ(graphs_of(again).features.values, graphs_of(graphs).features.values);
  EXPECT_EQ(graphs_of(again).edge_src, graphs_of(graphs).edge_src);
  EXPECT_EQ(graphs_of(again).edge_weight, graphs_of(graphs).edge_weight);
  EXPECT_EQ(graphs_of(again).part, graphs_of(graphs).part);

  const Dataset board = load("board:6x7");
  save_tables(folder_ / "board", board);
  const Dataset cells = load(folder_ / "board", raw);
  const auto& a = std::get<NodeData>(board.content);
  const auto& b = std::get<NodeData>(cells.content);
  EXPECT_EQ(b.target, a.target);
  EXPECT_EQ(b.splits[0], a.splits[0]);
  EXPECT_TRUE(std::equal(a.graph.col().begin(), a.graph.col().end(), b.graph.col().begin()));
  EXPECT_THAT(testing::message_of([&] { save_tables(folder_ / "board", board); }),
              HasSubstr("empty folder"));
}

TEST_F(Folders, SeriesComeBackFromTablesAndArrays) {
  std::string wide = "time,a,b\n";
  for (int t = 0; t < 20; ++t) wide += std::to_string(t) + "," + std::to_string(t % 3) + ",0.1\n";
  folder_.put("s/series.csv", wide);
  folder_.put("s/edges.csv", "src,dst,weight\na,b,0.5\n");
  const Dataset made = load(folder_ / "s");
  save_tables(folder_ / "tables", made);
  save_npz(folder_ / "series.npz", made);
  for (const char* name : {"tables", "series.npz"}) {
    const Dataset read = load(folder_ / name);
    EXPECT_EQ(series_of(read).values, series_of(made).values);
    EXPECT_EQ(series_of(read).node_ids, series_of(made).node_ids);
    EXPECT_EQ(series_of(read).lags, series_of(made).lags);
    EXPECT_THAT(series_of(read).graph.weight(), ElementsAre(0.5, 0.5));
  }
}

TEST_F(Folders, EdgesOfGraphsMayRunOneWay) {
  put_graphs();
  const Dataset dataset = load_graphs("graph,label,split\na,1.5,train\nb,2,val\nc,2.5,test\n",
                                      {.directed = EdgeUse::kForward});
  EXPECT_THAT(graphs_of(dataset).edge_src, ElementsAre(1, 0, 2));
  EXPECT_THAT(graphs_of(dataset).edge_dst, ElementsAre(0, 1, 1));
}

TEST_F(Folders, GraphsWithoutFeaturesGetDegrees) {
  folder_.put("g/nodes.csv", "graph\na\na\nb\nb\nb\nc\nc\n");
  folder_.put("g/edges.csv", "graph,src,dst\na,0,1\nb,0,1\nb,1,2\nc,0,1\n");
  const Dataset dataset = load_graphs("graph,label,split\na,1.5,val\nb,2,train\nc,3,test\n");
  EXPECT_THAT(dataset.notes, Contains(HasSubstr("degree")));
  EXPECT_EQ(graphs_of(dataset).columns.at(0).name, "degree");
  const LoadOptions options{.task = Task::kGraphRegression, .columns = &graphs_of(dataset).columns};
  std::filesystem::remove(folder_ / "g/graphs.csv");
  EXPECT_EQ(graphs_of(load(folder_ / "g", options)).features.values,
            graphs_of(dataset).features.values);
}

TEST_F(Folders, SeveralColumnsOfYesAndNoAreLabels) {
  put_graphs();
  const Dataset dataset =
      load_graphs("graph,label_a,label_b,split\na,yes,0,train\nb,no,,val\nc,no,1,test\n");
  EXPECT_EQ(dataset.task, Task::kGraphLabels);
  EXPECT_THAT(graphs_of(dataset).target.values, ElementsAre(1, 0, 0, ::testing::IsNan(), 0, 1));
  EXPECT_THAT(graphs_of(dataset).target_names, ElementsAre("label_a", "label_b"));
  EXPECT_EQ(
      load_graphs("graph,p,q,split\na,0.5,0,train\nb,1,2,val\nc,2,1,test\n", {.target = "p,q"})
          .task,
      Task::kGraphRegression);
}

TEST_F(Folders, LongAndWideSeriesAreTheSame) {
  std::string rows_long = "time,node,value\n";
  std::string wide = "time,b,a\n";
  for (int t = 29; t >= 0; --t) {
    const std::string at = std::to_string(t);
    rows_long += at + ",b," + std::to_string(t * t % 7) + "\n" + at + ",a," + at + "\n";
    wide += at + "," + std::to_string(t * t % 7) + "," + at + "\n";
  }
  folder_.put("l/series.csv", rows_long);
  folder_.put("w/series.csv", wide);
  for (const char* name : {"l", "w"}) {
    folder_.put(std::string(name) + "/edges.csv", "src,dst\na,b\n");
  }
  const Dataset first = load(folder_ / "l");
  const Dataset second = load(folder_ / "w");
  EXPECT_EQ(first.task, Task::kForecast);
  EXPECT_THAT(series_of(first).node_ids, ElementsAre("b", "a"));
  EXPECT_EQ(series_of(first).values, series_of(second).values);
  EXPECT_EQ(series_of(first).values[3], 1.0f);
  EXPECT_EQ(make_card(first).series->steps, 30);
  EXPECT_TRUE(holds_series(folder_ / "l"));
}

TEST_F(Folders, GapsStayGaps) {
  std::string wide = "date;a;b\n";
  for (int t = 0; t < 20; ++t) {
    const std::string hour = (t < 10 ? "0" : "") + std::to_string(t);
    wide +=
        "1.5.2024 " + hour + ":00;" + (t == 0 || t == 7 ? "NA" : std::to_string(t) + ",5") + ";1\n";
  }
  folder_.put("s/series.csv", wide);
  folder_.put("s/edges.csv", "src,dst\na,b\n");
  const Dataset dataset = load(folder_ / "s");
  const SeriesData& data = series_of(dataset);
  EXPECT_TRUE(std::isnan(data.values[0]));
  EXPECT_TRUE(std::isnan(data.values[2 * 7]));
  EXPECT_EQ(data.values[2 * 8], 8.5f);
  EXPECT_FLOAT_EQ(data.time_of_day.at(6), 0.25f);
  EXPECT_THAT(dataset.notes, Contains(HasSubstr("2 of 40 values are missing")));
}

// The same days in two files have the same place in a week.
TEST_F(Folders, DatesTellThePlaceInAPeriod) {
  const auto first_place = [&](int first_day) {
    std::string wide = "date,a,b\n";
    for (int day = first_day; day < first_day + 20; ++day) {
      wide += "1969-12-" + std::string(day < 10 ? "0" : "") + std::to_string(day) + ",1,2\n";
    }
    folder_.put("s/series.csv", wide);
    folder_.put("s/edges.csv", "src,dst\na,b\n");
    const Dataset dataset = load(folder_ / "s", {.period = 7.0});
    return places_in_period(series_of(dataset))[0];
  };
  EXPECT_EQ(first_place(2), std::fmod(first_place(1) + 1.0, 7.0));
  EXPECT_EQ(first_place(8), first_place(1));
}

TEST_F(Folders, DistancesBecomeWeights) {
  std::string wide = "time,a,b,c\n";
  for (int t = 0; t < 20; ++t) wide += std::to_string(t) + ",1,2," + std::to_string(t) + "\n";
  folder_.put("s/series.csv", wide);
  folder_.put("s/distances.csv", "from,to,cost\na,b,1\nb,c,2\na,c,9\nc,z,1\n");
  const Dataset dataset = load(folder_ / "s");
  const graph::Graph& graph = series_of(dataset).graph;
  EXPECT_EQ(graph.num_edges(), 2);  // a and c are too far
  const double deviation = std::sqrt((9.0 + 4.0 + 25.0) / 3.0);
  EXPECT_NEAR(graph.weight()[0], std::exp(-1.0 / (deviation * deviation)), 1e-12);
  EXPECT_THAT(dataset.notes, Contains(AllOf(HasSubstr("'z'"), HasSubstr("left out"))));
}

}  // namespace
}  // namespace mpssm::data
