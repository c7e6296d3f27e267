// SPDX-License-Identifier: MIT
// Names and folders, built-in data, and the real files if they are there.
#include "mpssm/data/load.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <sys/stat.h>

#include "mpssm/base/sha256.h"
#include "mpssm/data/registry.h"
#include "mpssm/graph/distances.h"
#include "mpssm/io/file.h"

#include "tests/data/files.h"
#include "tests/support/real_data.h"

namespace mpssm::data {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::HasSubstr;
using testing::load_complaint;
using testing::Scratch;

TEST(DataFolders, AreListedInOrder) {
  const auto folders = data_folders({.data_dir = "mine"});
  EXPECT_EQ(folders.front(), "mine");
  EXPECT_THAT(folders, Contains(Eq("data")));
}

TEST(Load, UnknownNameGetsTheNearest) {
  EXPECT_THAT(load_complaint("minesweper"), HasSubstr("did you mean 'minesweeper'?"));
  EXPECT_THAT(load_complaint("no-such-name"), HasSubstr("known datasets: board, properties"));
  EXPECT_THAT(load_complaint(""), HasSubstr("expected a dataset, a file or a folder"));
}

TEST(Load, AbsentPathIsSaidToBeAbsent) {
  const Scratch scratch;
  for (const char* name : {"gone.npz", "gone.json", "folder/", "folder/gone", "./gone"}) {
    const std::string message = load_complaint(scratch / name);
    EXPECT_THAT(message, HasSubstr("expected a file or folder, got none there"));
    EXPECT_THAT(message, ::testing::Not(HasSubstr("minesweeper")));
  }
  EXPECT_THAT(load_complaint("tolokers.npz"),
              AllOf(HasSubstr("got none there"), HasSubstr("did you mean 'tolokers'?")));
}

TEST(Load, WhatIsNeitherFileNorFolderIsNamed) {
  const Scratch scratch;
  EXPECT_THAT(load_complaint("/dev/null"), HasSubstr("a device, pipe or socket"));
  ASSERT_EQ(::mkfifo((scratch / "fifo").c_str(), 0600), 0);
  EXPECT_THAT(load_complaint(scratch / "fifo"), HasSubstr("a device, pipe or socket"));
  std::filesystem::create_symlink(scratch / "loop", scratch / "loop");
  std::filesystem::create_symlink(scratch / "gone", scratch / "link");
  for (const char* name : {"loop", "link"}) {
    EXPECT_THAT(load_complaint(scratch / name), HasSubstr("a link that leads nowhere"));
  }
}

TEST(Load, PathsOtherThanUtf8AreRefusedBeforeTheyAreRead) {
  const Scratch scratch;
  scratch.put("a\xFF/nodes.csv", "id,label\n");
  EXPECT_THAT(load_complaint(scratch / "a\xFF"),
              AllOf(HasSubstr("a\\xff"), HasSubstr("expected a path in UTF-8")));
  // Also if only the place behind the name is such.
  std::filesystem::create_symlink(scratch / "a\xFF", scratch / "plain");
  EXPECT_THAT(load_complaint(scratch / "plain"), HasSubstr("expected a path in UTF-8"));
}

TEST(Load, SettingsThatMeanNothingToBuiltInDataAreRefused) {
  EXPECT_THAT(load_complaint("board:4x4", {.task = Task::kNodeRegression}), HasSubstr("data.task"));
  EXPECT_THAT(load_complaint("board:4x4", {.target = "mines"}), HasSubstr("data.target"));
  EXPECT_THAT(load_complaint("board:4x4", {.directed = EdgeUse::kForward}),
              HasSubstr("data.directed"));
  EXPECT_THAT(load_complaint("board:4x4", {.lags = 2}), HasSubstr("data.lags"));
  EXPECT_THAT(load("board:4x4", {.split_seed = 1}).notes,
              ::testing::ElementsAre(HasSubstr("data.split_seed")));
}

TEST(Load, AbsentFileSaysWhereFromAndWhereTo) {
  EXPECT_THAT(load_complaint("roman-empire", {.data_dir = "mine"}),
              AllOf(HasSubstr("roman-empire: hetero/roman_empire.npz not found in mine, "),
                    HasSubstr("yandex-research/heterophilous-graphs"),
                    HasSubstr("put it into mine (or set --data-dir)")));
}

TEST(Load, OtherContentThanRegisteredIsRefused) {
  const Scratch folder;
  folder.put("minesweeper.npz", "not the file");
  EXPECT_THAT(load_complaint("minesweeper", {.data_dir = folder.folder()}),
              AllOf(HasSubstr("expected sha256 e664c8dacf1e..., got "), HasSubstr("by its path")));
}

TEST(Load, RegisteredTaskCannotBeChanged) {
  EXPECT_THAT(load_complaint("minesweeper", {.task = Task::kNodeRegression}),
              HasSubstr("expected task node_binary, got node_regression"));
}

TEST(Load, RegisteredFileMustFitItsTask) {
  const Scratch folder;
  io::write_npz(folder / "roman_empire.npz",
                {{"node_features", testing::floats({1, 2, 3, 4}, {4, 1})},
                 {"node_labels", testing::integers({0, 1, 0, 1})},
                 {"edges", testing::integers({0, 1}, {1, 2})}});
  EXPECT_THAT(load_complaint("roman-empire", {.data_dir = folder.folder()}),
              HasSubstr("expected data for task node_classes, got node_binary"));
}

TEST(Load, UnknownKindsOfFilesAreRefused) {
  const Scratch folder;
  EXPECT_THAT(load_complaint(folder.put("a.txt", "x")), HasSubstr("ending in '.txt'"));
  EXPECT_THAT(load_complaint(folder.put("a.npz", "x")), HasSubstr("a.npz"));
  io::write_npz(folder / "b.npz", {{"foo", testing::floats({1})}});
  EXPECT_THAT(load_complaint(folder / "b.npz"), HasSubstr("(series), got foo"));
  EXPECT_THAT(load_complaint(folder.folder().string()), HasSubstr("got no nodes.csv"));
}

TEST(Board, IsTheGameOfTheBenchmark) {
  const Dataset dataset = load("board:20x30", {.make_seed = 3});
  EXPECT_EQ(dataset.task, Task::kNodeBinary);
  EXPECT_EQ(dataset.metric, "roc_auc");
  const auto& data = std::get<NodeData>(dataset.content);
  ASSERT_EQ(data.graph.num_nodes(), 600);
  EXPECT_EQ(std::accumulate(data.target.begin(), data.target.end(), 0.0f), 120.0f);
  EXPECT_EQ(data.splits.size(), 10u);
  std::int64_t hidden = 0;
  for (std::int64_t i = 0; i < 600; ++i) {
    const auto* row = &data.features.values[i * 7];
    EXPECT_EQ(std::accumulate(row, row + 7, 0.0f), 1.0f);
    hidden += row[0] == 1.0f;
    float mines = 0.0f;
    for (auto e = data.graph.row_ptr()[i]; e < data.graph.row_ptr()[i + 1]; ++e) {
      mines += data.target[data.graph.col()[e]];
    }
    EXPECT_TRUE(row[0] == 1.0f || row[1 + std::min(5, static_cast<int>(mines))] == 1.0f);
  }
  EXPECT_EQ(hidden, 300);
  for (const auto& split : data.splits) {
    EXPECT_EQ(std::count(split.begin(), split.end(), Part::kTrain), 300);
    EXPECT_EQ(std::count(split.begin(), split.end(), Part::kVal), 150);
  }
}

TEST(Board, FollowsItsSeedAndItsSize) {
  const auto target_of = [](const char* name, std::uint64_t seed) {
    return std::get<NodeData>(load(name, {.make_seed = seed}).content).target;
  };
  EXPECT_EQ(target_of("board:9x9", 1), target_of("board:9x9", 1));
  EXPECT_NE(target_of("board:9x9", 1), target_of("board:9x9", 2));
  EXPECT_EQ(target_of("board", 0).size(), 10000u);
  EXPECT_EQ(target_of("board:2x2", 0).size(), 4u);
}

TEST(Board, StrangeSizesAreRefused) {
  for (const char* name : {"board:", "board:1x9", "board:9", "board:9x2001", "board:-3x9",
                           "board:9x9x9", "board:99999999999999999999x2", "board:axb"}) {
    EXPECT_THAT(load_complaint(name), AllOf(HasSubstr("board:ROWSxCOLUMNS"), HasSubstr(name)));
  }
}

TEST(Properties, AreTrueOfTheirGraphs) {
  const std::array<GraphsData, 4> made = {
      std::get<GraphsData>(load("properties:diameter:40").content),
      std::get<GraphsData>(load("properties:sssp:40").content),
      std::get<GraphsData>(load("properties:eccentricity:40").content),
      std::get<GraphsData>(load("properties:laplacian:40").content)};
  const GraphsData& data = made[0];
  ASSERT_EQ(data.num_graphs(), 60);
  EXPECT_EQ(std::count(data.part.begin(), data.part.end(), Part::kTrain), 40);
  for (const GraphsData& other : made) EXPECT_EQ(other.edge_src, data.edge_src);
  for (std::int64_t g = 0; g < data.num_graphs(); ++g) {
    const std::int64_t first = data.node_ptr[g];
    graph::EdgeList edges{.num_nodes = data.node_ptr[g + 1] - first};
    EXPECT_TRUE(edges.num_nodes >= 25 && edges.num_nodes <= 34);
    for (std::int64_t e = data.edge_ptr[g]; e < data.edge_ptr[g + 1]; ++e) {
      edges.src.push_back(data.edge_src[e]);
      edges.dst.push_back(data.edge_dst[e]);
    }
    const auto graph = graph::Graph::from_edges(edges, graph::Direction::kDirected);
    EXPECT_TRUE(graph.is_symmetric());
    EXPECT_EQ(data.target.values[g], static_cast<float>(graph::diameter(graph)));
    std::int64_t source = 0;
    while (data.features.values[2 * (first + source)] == 0.0f) ++source;
    const auto hops = graph::distances_from(graph, source);
    const auto farthest = graph::eccentricities(graph);
    for (std::int64_t i = 0; i < graph.num_nodes(); ++i) {
      EXPECT_LT(graph.row_ptr()[i], graph.row_ptr()[i + 1]) << "isolated";
      EXPECT_EQ(made[1].target.values[first + i], std::max(hops[i], 0));
      EXPECT_EQ(made[2].target.values[first + i], farthest[i]);
      double laplacian = 0.0;
      for (auto e = graph.row_ptr()[i]; e < graph.row_ptr()[i + 1]; ++e) {
        laplacian += data.features.values[2 * (first + i) + 1] -
                     data.features.values[2 * (first + graph.col()[e]) + 1];
      }
      EXPECT_NEAR(made[3].target.values[first + i], laplacian, 1e-5);
    }
  }
  EXPECT_EQ(data.label_scale,
            *std::max_element(data.target.values.begin(), data.target.values.begin() + 40));
}

TEST(Properties, StrangeNamesAreRefused) {
  for (const char* name : {"properties", "properties:girth", "properties:sssp:3",
                           "properties:sssp:x", "properties:sssp:99999999"}) {
    EXPECT_THAT(load_complaint(name), AllOf(HasSubstr("properties:PROPERTY"), HasSubstr(name)));
  }
}

class RealData : public ::testing::Test {
 protected:
  bool find(const std::string& file) {
    options_.data_dir = testing::real_data();
    return std::filesystem::exists(options_.data_dir / file);
  }
  LoadOptions options_;
};

TEST_F(RealData, MinesweeperIsTheBoardWeMake) {
  if (!find("hetero/minesweeper.npz")) GTEST_SKIP() << "hetero/minesweeper.npz is not here";
  const auto data = std::get<NodeData>(load("minesweeper", options_).content);
  EXPECT_EQ(data.graph.num_edges(), 39402);
  EXPECT_EQ(data.splits.size(), 10u);
  const auto board = std::get<NodeData>(load("board").content);
  EXPECT_TRUE(std::ranges::equal(data.graph.col(), board.graph.col()));
  const auto column_sums = [](const NodeData& nodes) {
    std::array<float, 7> sums = {};
    for (std::size_t i = 0; i < nodes.features.values.size(); ++i) {
      sums[i % 7] += nodes.features.values[i];
    }
    return sums;
  };
  EXPECT_EQ(column_sums(data)[0], column_sums(board)[0]);
  for (int c = 1; c < 7; ++c) EXPECT_NEAR(column_sums(data)[c], column_sums(board)[c], 150.0f);
}

TEST_F(RealData, TolokersIsComplete) {
  if (!find("hetero/tolokers.npz")) GTEST_SKIP() << "hetero/tolokers.npz is not here";
  const auto data = std::get<NodeData>(load("tolokers", options_).content);
  EXPECT_EQ(data.graph.num_edges(), 519000);
  EXPECT_EQ(std::count(data.splits[9].begin(), data.splits[9].end(), Part::kTest), 2940);
}

TEST_F(RealData, PropertiesHaveTheirScales) {
  if (!find("gpp/gpp_25-35.npz")) GTEST_SKIP() << "gpp/gpp_25-35.npz is not here";
  const auto check = [&](const char* name, Task task, double scale) {
    const Dataset dataset = load(name, options_);
    EXPECT_EQ(dataset.name, name);
    EXPECT_EQ(dataset.task, task);
    EXPECT_EQ(dataset.metric, "log10_mse");
    EXPECT_TRUE(dataset.notes.empty());
    const auto& data = std::get<GraphsData>(dataset.content);
    EXPECT_EQ(data.num_graphs(), 7040);
    EXPECT_NEAR(data.label_scale, scale, 1e-5);
  };
  check("diameter", Task::kGraphRegression, 33);
  check("sssp", Task::kNodeRegression, 30);
  check("eccentricity", Task::kNodeRegression, 33);
  check("gpp-published-sssp", Task::kNodeRegression, 17.755381);
  check("gpp-published-eccentricity", Task::kNodeRegression, 30);
}

TEST_F(RealData, PeptidesAreComplete) {
  if (!find("peptides-func")) GTEST_SKIP() << "peptides-func is not here";
  const Dataset dataset = load("peptides-func", options_);
  EXPECT_EQ(dataset.metric, "average_precision");
  EXPECT_TRUE(dataset.notes.empty());
  const auto& data = std::get<GraphsData>(dataset.content);
  EXPECT_EQ(data.num_graphs(), 15535);
  EXPECT_EQ(data.node_ptr.back(), 2344859);
  EXPECT_EQ(data.edge_src.size(), 4773974u);
  EXPECT_THAT(data.vocabulary, ElementsAre(119, 5, 12, 12, 10, 6, 6, 2, 2));
  EXPECT_EQ(data.target.columns, 10);
  EXPECT_EQ(data.target_names[9], "toxic");
  EXPECT_EQ(std::count(data.part.begin(), data.part.end(), Part::kVal), 2331);
}

TEST_F(RealData, TemporalSeriesAreTheSameInBothForms) {
  for (const auto& [name, file, lags] : {std::tuple{"chickenpox", "chickenpox/chickenpox", 4},
                                         std::tuple{"pedalme", "pedalme/pedalme_london", 4}}) {
    if (!find(std::string(file) + ".json")) GTEST_SKIP() << file << ".json is not here";
    const Dataset json = load(name, options_);
    EXPECT_EQ(json.metric, "mse");
    const auto& a = std::get<SeriesData>(json.content);
    EXPECT_EQ(a.lags, lags);
    EXPECT_EQ(a.graph.num_entries(), a.num_nodes == 20 ? 102 : 225);
    // A folder that has the other form only.
    const Scratch folder;
    const std::string npz = std::filesystem::path(file).filename().string() + ".npz";
    std::filesystem::copy_file(options_.data_dir / (std::string(file) + ".npz"), folder / npz);
    const DatasetInfo& info = *find_dataset(name);
    ASSERT_EQ(info.alternatives.size(), 1u);
    EXPECT_EQ(base::sha256(io::read_file(folder / npz)), info.alternatives[0].sha256);
    const auto b = std::get<SeriesData>(load(folder / npz).content);
    EXPECT_EQ(a.values, b.values);
    EXPECT_THAT(std::vector<double>(b.graph.weight().begin(), b.graph.weight().end()),
                ::testing::Pointwise(::testing::DoubleNear(1e-6), a.graph.weight()));
  }
}

TEST_F(RealData, TrafficFallsBackToTheSubset) {
  if (!find("traffic/metr_la_subset29.npz")) GTEST_SKIP() << "traffic is not here";
  if (find("traffic/metr_la.npz")) GTEST_SKIP() << "the whole of METR-LA is here";
  const Dataset dataset = load("metr-la", options_);
  EXPECT_EQ(dataset.name, "metr-la-29");
  EXPECT_THAT(dataset.notes, ElementsAre(HasSubstr("not comparable with published metr-la")));
  const auto& series = std::get<SeriesData>(dataset.content);
  EXPECT_EQ(series.num_nodes, 29);
  EXPECT_EQ(series.graph.num_self_loops(), 29);
  EXPECT_TRUE(series.graph.is_symmetric());
  EXPECT_EQ(series.time_of_day.size(), 34272u);
  EXPECT_THAT(dataset.protocol, HasSubstr("23974 train, 3425 val, 6850 test"));
  EXPECT_EQ(load("pems-bay-67", options_).name, "pems-bay-67");
}

}  // namespace
}  // namespace mpssm::data
