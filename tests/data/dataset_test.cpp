// SPDX-License-Identifier: MIT
#include "mpssm/data/dataset.h"

#include <limits>

#include "mpssm/data/registry.h"

#include "tests/data/files.h"

namespace mpssm::data {
namespace {

using ::testing::HasSubstr;
using testing::message_of;

TEST(Task, NamesGoBothWays) {
  for (const Task task : {Task::kNodeBinary, Task::kNodeClasses, Task::kNodeRegression,
                          Task::kGraphRegression, Task::kGraphLabels, Task::kForecast}) {
    EXPECT_EQ(task_from_name(to_string(task)), task);
  }
  EXPECT_EQ(to_string(Task::kGraphLabels), "graph_labels");
  EXPECT_EQ(to_string(Part::kVal), "val");
}

TEST(Task, UnknownNameListsTheKnownOnes) {
  EXPECT_THAT(message_of([] { task_from_name("cluster\n"); }),
              ::testing::AllOf(HasSubstr("node_binary, node_classes"), HasSubstr("cluster")));
}

TEST(WindowSplit, IsThatOfDcrnn) {
  SeriesData series{.num_steps = 34272, .lags = 12, .horizon = 12};
  WindowSplit split = window_split(series);
  EXPECT_EQ(split.val, 23974);
  EXPECT_EQ(split.test - split.val, 3425);
  EXPECT_EQ(split.end - split.test, 6850);
  series.num_steps = 52116;
  split = window_split(series);
  EXPECT_EQ(split.val, 36465);
  EXPECT_EQ(split.test - split.val, 5209);
  EXPECT_EQ(split.end - split.test, 10419);
}

TEST(WindowSplit, IsThatOfPytorchGeometricTemporal) {
  SeriesData series{
      .num_steps = 521, .lags = 4, .rule = WindowRule::kTrainThenTest, .train_ratio = 0.9};
  WindowSplit split = window_split(series);
  EXPECT_EQ(split.test, 465);
  EXPECT_EQ(split.val, 465 - 51);
  EXPECT_EQ(split.end, 517);
  series.num_steps = 35;
  split = window_split(series);
  EXPECT_EQ(split.test, 27);
  EXPECT_EQ(split.val, 24);
  EXPECT_EQ(split.end, 31);
}

TEST(WindowSplit, RefusesWindowsLongerThanTheSeries) {
  const SeriesData series{.num_steps = 10, .lags = 8, .horizon = 3};
  EXPECT_THAT(message_of([&] { window_split(series); }), HasSubstr("8 + 3 steps, got 10"));
}

TEST(WindowSplit, RefusesSizesThatWouldOverflow) {
  constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
  const SeriesData series{.num_steps = 10, .lags = kMax, .horizon = kMax};
  EXPECT_THAT(message_of([&] { window_split(series); }), HasSubstr("steps, got 10"));
}

TEST(WindowSplit, RefusesAnEmptyPart) {
  const SeriesData series{.num_steps = 6, .lags = 4, .horizon = 1};
  EXPECT_THAT(message_of([&] { window_split(series); }),
              HasSubstr("at least one window each in train, val and test, got 2"));
}

TEST(WindowSplit, RefusesNoLagsAndStrangeRatios) {
  EXPECT_THAT(message_of([] { window_split({.num_steps = 99, .lags = 0}); }),
              HasSubstr("at least 1, got 0 and 1"));
  for (const double ratio : {0.0, 1.0, -2.0, 7.0, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_THAT(message_of([&] { window_split({.num_steps = 99, .train_ratio = ratio}); }),
                HasSubstr("train ratio between 0 and 1"));
  }
}

TEST(Registry, HoldsEveryDatasetOnceWithWhatPeopleNeed) {
  for (const char* name : {"diameter",
                           "sssp",
                           "eccentricity",
                           "gpp-published-sssp",
                           "gpp-published-eccentricity",
                           "minesweeper",
                           "tolokers",
                           "roman-empire",
                           "amazon-ratings",
                           "questions",
                           "chickenpox",
                           "pedalme",
                           "wikimath",
                           "wikimath-reconstructed",
                           "metr-la",
                           "metr-la-29",
                           "pems-bay",
                           "pems-bay-67",
                           "peptides-func",
                           "peptides-struct"}) {
    ASSERT_NE(find_dataset(name), nullptr) << name;
    EXPECT_EQ(find_dataset(name)->name, name);
  }
  EXPECT_EQ(registry().size(), 20u);
  for (const DatasetInfo& info : registry()) {
    EXPECT_FALSE(info.summary.empty() || info.protocol.empty() || info.metric.empty()) << info.name;
    ASSERT_FALSE(info.files.empty()) << info.name;
    for (const DatasetFile& file : info.files) {
      EXPECT_FALSE(file.source.empty()) << info.name;
      EXPECT_TRUE(file.sha256.empty() || file.sha256.size() == 64) << info.name;
    }
    if (!info.fallback.empty()) {
      EXPECT_NE(find_dataset(info.fallback), nullptr);
    }
  }
  EXPECT_EQ(find_dataset("mines"), nullptr);
  EXPECT_EQ(find_dataset(""), nullptr);
}

}  // namespace
}  // namespace mpssm::data
