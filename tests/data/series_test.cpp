// SPDX-License-Identifier: MIT
// Series as arrays and as JSON.
#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <vector>

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

const SeriesData& series_of(const Dataset& dataset) {
  return std::get<SeriesData>(dataset.content);
}

io::Array ramp(std::int64_t steps, std::int64_t nodes) {
  std::vector<float> values(static_cast<std::size_t>(steps * nodes));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  return floats(values, {steps, nodes});
}

class Series : public ::testing::Test {
 protected:
  Dataset load_arrays(const Arrays& arrays, const LoadOptions& options = {}) {
    io::write_npz(folder_ / "s.npz", arrays);
    return load(folder_ / "s.npz", options);
  }
  std::string message_of(const Arrays& arrays, const LoadOptions& options = {}) {
    return testing::message_of([&] { load_arrays(arrays, options); });
  }
  Dataset load_json(const std::string& text, const LoadOptions& options = {}) {
    return load(folder_.put("s.json", text), options);
  }
  std::string json_complaint(const std::string& text) {
    return testing::message_of([&] { load_json(text); });
  }

  Scratch folder_;
};

// A series of two nodes as JSON.
std::string rows(int steps) {
  std::string text;
  for (int t = 0; t < steps; ++t) text += (t == 0 ? "[" : ",[") + std::to_string(t) + ",0.5]";
  return "[" + text + "]";
}

TEST_F(Series, SaysWhatIsNotUsedAndRefusesWhatMeansNothing) {
  const Arrays arrays = {
      {"x", ramp(50, 3)}, {"edges", integers({0, 1, 1, 2}, {2, 2})}, {"edge_attr", floats({1, 2})}};
  EXPECT_THAT(load_arrays(arrays, {.split_seed = 3}).notes,
              ElementsAre(AllOf(HasSubstr("not used"), HasSubstr("'edge_attr'")),
                          HasSubstr("data.split_seed")));
  EXPECT_THAT(message_of(arrays, {.target = "x"}), HasSubstr("data.target"));
  const std::string json = "{\"edges\": [[0, 1]], \"X\": " + rows(30);
  EXPECT_TRUE(load_json(json + "}").notes.empty());
  EXPECT_THAT(load_json(json + ", \"edge_weights\": [2]}").notes,
              ElementsAre(AllOf(HasSubstr("not used"), HasSubstr("'edge_weights'"))));
}

/// (from, to, weight) of every entry.
std::vector<std::tuple<int, int, double>> entries_of(const graph::Graph& graph) {
  std::vector<std::tuple<int, int, double>> entries;
  for (std::int64_t i = 0; i < graph.num_nodes(); ++i) {
    for (std::int64_t e = graph.row_ptr()[i]; e < graph.row_ptr()[i + 1]; ++e) {
      entries.emplace_back(graph.col()[e], i, graph.weight()[e]);
    }
  }
  std::ranges::sort(entries);
  return entries;
}

TEST_F(Series, RunOneWayIfAsked) {
  using Entries = std::vector<std::tuple<int, int, double>>;
  const Arrays listed = {{"x", ramp(50, 3)},
                         {"edges", integers({0, 1, 1, 2, 2, 1}, {3, 2})},
                         {"weights", floats({1, 2, 4})}};
  const Arrays matrix = {{"x", ramp(50, 3)}, {"adj", floats({0, 1, 0, 0, 0, 2, 0, 4, 0}, {3, 3})}};
  const Entries forward = {{0, 1, 1.0}, {1, 2, 2.0}, {2, 1, 4.0}};
  const Entries backward = {{1, 0, 1.0}, {1, 2, 4.0}, {2, 1, 2.0}};
  for (const Arrays& arrays : {listed, matrix}) {
    const auto entries = [&](const LoadOptions& options) {
      return entries_of(series_of(load_arrays(arrays, options)).graph);
    };
    EXPECT_EQ(entries({.directed = EdgeUse::kForward}), forward);
    EXPECT_EQ(entries({.directed = EdgeUse::kBackward}), backward);
    EXPECT_TRUE(series_of(load_arrays(arrays)).graph.is_symmetric());
    EXPECT_EQ(entries({.directed = EdgeUse::kBoth}), entries({}));
  }
  const std::string json = "{\"edges\": [[0, 1]], \"weights\": [3], \"X\": " + rows(30) + "}";
  EXPECT_EQ(entries_of(series_of(load_json(json, {.directed = EdgeUse::kForward})).graph),
            (Entries{{0, 1, 3.0}}));
  // Written, and read again as it was.
  for (const bool changes : {false, true}) {
    Arrays arrays = listed;
    if (changes) arrays["edge_step"] = integers({0, 20, 20}, {3});
    const Dataset dataset = load_arrays(arrays, {.directed = EdgeUse::kForward});
    save_npz(folder_ / "again.npz", dataset);
    const Dataset again = load(folder_ / "again.npz");
    const SeriesData& series = series_of(again);
    EXPECT_EQ(entries_of(series.graph), forward);
    ASSERT_EQ(series.changing.graphs.size(), changes ? 2 : 0);
    if (changes) {
      EXPECT_EQ(entries_of(series.changing.graphs[1]), (Entries{{1, 2, 2.0}, {2, 1, 4.0}}));
    }
  }
}

TEST_F(Series, SmallFilesMayNotBecomeLargeOnes) {
  constexpr std::int64_t kNodes = 3000;
  const auto too_large = HasSubstr(" to become at most ");
  EXPECT_THAT(message_of({{"x", testing::bytes(20 * kNodes, 0, {20, kNodes})},
                          {"adj", testing::bytes(kNodes * kNodes, 1, {kNodes, kNodes})}}),
              AllOf(HasSubstr("'adj'"), too_large));
  EXPECT_THAT(message_of({{"x", testing::bytes(60'000'000, 0, {20, 3'000'000})},
                          {"edges", integers({0, 1}, {1, 2})}}),
              AllOf(HasSubstr("'x'"), too_large));
}

TEST_F(Series, OwnArraysGetDefaultsByLength) {
  const io::Array edges = integers({0, 1, 1, 2}, {2, 2});
  Dataset dataset = load_arrays({{"x", ramp(50, 3)}, {"edges", edges}});
  EXPECT_EQ(dataset.task, Task::kForecast);
  EXPECT_EQ(dataset.metric, "mae");
  EXPECT_EQ(series_of(dataset).lags, 4);
  EXPECT_EQ(series_of(dataset).horizon, 1);
  EXPECT_TRUE(series_of(dataset).standardise);
  EXPECT_FALSE(series_of(dataset).null_value);
  EXPECT_EQ(series_of(dataset).graph.num_edges(), 2);
  dataset = load_arrays({{"values", ramp(200, 3)}, {"edges", edges}});
  EXPECT_EQ(series_of(dataset).lags, 12);
}

TEST_F(Series, OptionsOverrideTheProtocol) {
  const Dataset dataset =
      load_arrays({{"x", ramp(100, 3)}, {"edge_index", integers({0, 1, 1, 2}, {2, 2})}},
                  {.standardise = false, .lags = 7, .horizon = 3, .train_ratio = 0.4});
  const SeriesData& series = series_of(dataset);
  EXPECT_EQ(series.lags, 7);
  EXPECT_EQ(series.horizon, 3);
  EXPECT_FALSE(series.standardise);
  const WindowSplit split = window_split(series);
  EXPECT_EQ(split.val, 36);
  EXPECT_EQ(split.test, 55);
  EXPECT_THAT(dataset.protocol, HasSubstr("7 steps in, 3 out"));
}

TEST_F(Series, MayHaveSeveralFeatures) {
  const Dataset dataset =
      load_arrays({{"x", floats(std::vector<float>(20 * 2 * 3, 1.0f), {20, 2, 3})},
                   {"edges", integers({0, 1}, {1, 2})}});
  EXPECT_EQ(series_of(dataset).num_features, 3);
  EXPECT_EQ(series_of(dataset).num_nodes, 2);
}

TEST_F(Series, TrafficTakesTheLargerDirectionAndKeepsTheDiagonal) {
  const Dataset dataset = load_arrays({{"speed", ramp(100, 2)},
                                       {"adj", floats({1.0f, 0.25f, 0.5f, 1.0f}, {2, 2})},
                                       {"sensor_ids", integers({773, 774})},
                                       {"time_in_day", floats(std::vector<float>(100, 0.5f))}});
  const SeriesData& series = series_of(dataset);
  EXPECT_THAT(series.graph.weight(), ElementsAre(1.0, 0.5, 0.5, 1.0));
  EXPECT_THAT(series.node_ids, ElementsAre("773", "774"));
  EXPECT_EQ(series.lags, 12);
  EXPECT_EQ(series.horizon, 12);
  EXPECT_EQ(series.null_value, 0.0f);
  EXPECT_THAT(dataset.protocol, HasSubstr("targets of 0 left out"));
}

TEST_F(Series, WeightedDirectionsAreAveraged) {
  Dataset dataset = load_arrays({{"x", ramp(50, 3)},
                                 {"edges", integers({0, 1, 1, 0, 1, 2}, {3, 2})},
                                 {"weights", floats({1.0f, -3.0f, 4.0f})}});
  EXPECT_THAT(series_of(dataset).graph.weight(), ElementsAre(2.0, 2.0, 2.0, 2.0));
  dataset = load_arrays({{"x", ramp(50, 3)},
                         {"edges", integers({0, 1, 1, 2}, {2, 2})},
                         {"weights", floats({1.0f, 4.0f})}});
  EXPECT_THAT(series_of(dataset).graph.weight(), ElementsAre(1.0, 1.0, 4.0, 4.0));
}

TEST_F(Series, MissingReadingsAreKept) {
  const io::Array edges = integers({0, 1}, {1, 2});
  std::vector<float> values(60, 1.0f);
  values[2 * 3 + 1] = std::numeric_limits<float>::quiet_NaN();
  const Dataset dataset = load_arrays({{"x", floats(values, {20, 3})}, {"edges", edges}});
  EXPECT_TRUE(std::isnan(series_of(dataset).values[2 * 3 + 1]));
  EXPECT_THAT(dataset.notes, ElementsAre(HasSubstr("1 of 60 values are missing")));
  EXPECT_THAT(dataset.protocol, HasSubstr("missing targets left out"));
  for (int t = 0; t < 20; ++t) values[t * 3 + 1] = values[2 * 3 + 1];
  EXPECT_THAT(message_of({{"x", floats(values, {20, 3})}, {"edges", edges}}),
              HasSubstr("s.npz: node '1': expected values, got none"));
}

TEST_F(Series, OtherNumbersThatAreNoneAreNamedWithTheirPlace) {
  const io::Array edges = integers({0, 1}, {1, 2});
  std::vector<float> values(60, 1.0f);
  values[2 * 3 + 1] = std::numeric_limits<float>::infinity();
  EXPECT_THAT(message_of({{"x", floats(values, {20, 3})}, {"edges", edges}}),
              AllOf(HasSubstr("s.npz: step 2, node 1"), HasSubstr("got inf")));
  values[2 * 3 + 1] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(message_of({{"x", floats(values, {20, 1, 3})}, {"edges", integers({0, 0}, {1, 2})}}),
              AllOf(HasSubstr("step 2, node 0"), HasSubstr("only what is forecast")));
}

TEST_F(Series, ThePeriodIsGivenOrTheClocks) {
  const Arrays plain = {{"x", ramp(100, 3)}, {"edges", integers({0, 1}, {1, 2})}};
  EXPECT_EQ(series_of(load_arrays(plain)).period, 0.0);
  EXPECT_EQ(series_of(load_arrays(plain, {.period = 52.5})).period, 52.5);
  Arrays hourly = plain;
  std::vector<float> clock(100);
  for (std::size_t t = 0; t < clock.size(); ++t) clock[t] = static_cast<float>(t % 4) / 4.0f;
  hourly["time_in_day"] = floats(clock);
  EXPECT_EQ(series_of(load_arrays(hourly)).period, 28.0);
  EXPECT_EQ(series_of(load_arrays(hourly, {.train_ratio = 0.4})).period, 4.0);
}

TEST_F(Series, NeedsAGraph) {
  EXPECT_THAT(message_of({{"x", ramp(50, 3)}}), HasSubstr("'edges', 'edge_index' or 'adj'"));
}

TEST_F(Series, EdgeOutOfRangeIsNamed) {
  EXPECT_THAT(message_of({{"x", ramp(50, 3)}, {"edge_index", integers({0, 1, 1, 3}, {2, 2})}}),
              AllOf(HasSubstr("'edge_index': [1, 1]"), HasSubstr("[0, 3), got 3")));
}

TEST_F(Series, AdjacencyOfAnotherSizeIsRefused) {
  EXPECT_THAT(message_of({{"x", ramp(50, 3)}, {"adj", floats({1, 1, 1, 1}, {2, 2})}}),
              HasSubstr("'adj'"));
}

TEST_F(Series, ValuesOfAnotherShapeAreRefused) {
  const io::Array edges = integers({0, 1}, {1, 2});
  EXPECT_THAT(message_of({{"x", floats({1, 2, 3})}, {"edges", edges}}), HasSubstr("got 1 axes"));
  EXPECT_THAT(message_of({{"x", floats({}, {0, 3})}, {"edges", edges}}),
              HasSubstr("none of them 0"));
}

TEST_F(Series, TimeOfDayMustBeInRange) {
  EXPECT_THAT(message_of({{"x", ramp(50, 2)},
                          {"edges", integers({0, 1}, {1, 2})},
                          {"time_in_day", floats(std::vector<float>(50, 1.0f))}}),
              AllOf(HasSubstr("'time_in_day': [0]"), HasSubstr("[0, 1)")));
}

TEST_F(Series, TooShortIsRefusedWithTheFile) {
  const Arrays arrays = {{"x", ramp(5, 2)}, {"edges", integers({0, 1}, {1, 2})}};
  EXPECT_THAT(message_of(arrays), AllOf(HasSubstr("s.npz: windows"), HasSubstr("in all")));
  EXPECT_THAT(message_of(arrays, {.lags = 100}), HasSubstr("100 + 1 steps, got 5"));
}

TEST_F(Series, JsonIsThatOfPytorchGeometricTemporal) {
  const Dataset dataset = load_json(
      R"({"edges": [[0,1],[1,0],[0,0]], "weights": [1, 2, 5], "node_ids": {"B": 1, "A": 0}, "FX": )" +
      rows(30) + "}");
  EXPECT_EQ(dataset.metric, "mse");
  const SeriesData& series = series_of(dataset);
  EXPECT_EQ(series.num_steps, 30);
  EXPECT_EQ(series.num_nodes, 2);
  EXPECT_EQ(series.values[2 * 29], 29.0f);
  EXPECT_EQ(series.lags, 4);
  EXPECT_EQ(series.rule, WindowRule::kTrainThenTest);
  EXPECT_FALSE(series.standardise);
  EXPECT_THAT(series.node_ids, ElementsAre("A", "B"));
  EXPECT_THAT(series.graph.weight(), ElementsAre(5.0, 1.5, 1.5));
}

// The published protocol looks at the test period; own data are scaled by their training windows.
TEST_F(Series, OnlyThePublishedJsonByPeriodsIsStandardisedOverAllTime) {
  std::string text = R"({"edges": [[0,1]], "weights": [3], "time_periods": 30)";
  for (int t = 0; t < 30; ++t) {
    text +=
        ",\"" + std::to_string(t) + "\": {\"index\": 0, \"y\": [" + std::to_string(t % 2) + ", 7]}";
  }
  const Dataset own = load_json(text + "}");
  EXPECT_EQ(series_of(own).lags, 8);
  EXPECT_EQ(series_of(own).num_steps, 30);
  EXPECT_TRUE(series_of(own).standardise);
  EXPECT_THAT(std::vector(series_of(own).values.begin(), series_of(own).values.begin() + 4),
              ElementsAre(0.0f, 7.0f, 1.0f, 7.0f));

  folder_.put("wikivital_mathematics.json", text + "}");
  const Dataset published = load("wikimath", {.data_dir = folder_.folder()});
  const SeriesData& series = series_of(published);
  EXPECT_FALSE(series.standardise);
  EXPECT_FLOAT_EQ(series.values[0], -1.0f);
  EXPECT_FLOAT_EQ(series.values[2], 1.0f);
  EXPECT_EQ(series.values[1], 0.0f);
}

TEST_F(Series, BrokenJsonIsRefused) {
  EXPECT_THAT(json_complaint("{\"edges\": [[0,"), HasSubstr("s.json: expected JSON"));
  EXPECT_THAT(json_complaint("[1]"), HasSubstr("expected an object"));
  EXPECT_THAT(json_complaint("{\"FX\": [[NaN]]}"), HasSubstr("expected JSON"));
  EXPECT_THAT(json_complaint("{\"FX\": [[1e999]]}"), HasSubstr("expected JSON"));
  EXPECT_THAT(json_complaint(std::string(100000, '[')), HasSubstr("expected JSON"));
}

TEST_F(Series, JsonMembersAreChecked) {
  const std::string series = ",\"X\": " + rows(30) + "}";
  EXPECT_THAT(json_complaint("{\"edges\": []}"), HasSubstr("member 'X'"));
  EXPECT_THAT(json_complaint("{\"edges\": 3" + series), HasSubstr("'edges': expected a list"));
  EXPECT_THAT(json_complaint("{\"edges\": [[0,2]]" + series), HasSubstr("[0, 2), got 2"));
  EXPECT_THAT(json_complaint("{\"edges\": [[0,-1]]" + series), HasSubstr("got -1"));
  EXPECT_THAT(json_complaint("{\"edges\": [[0,1.5]]" + series), HasSubstr("got 1.5"));
  EXPECT_THAT(json_complaint("{\"edges\": [[0,18446744073709551615]]" + series),
              HasSubstr("got 18446744073709551615"));
  EXPECT_THAT(json_complaint("{\"edges\": [[0]]" + series), HasSubstr("a pair of nodes"));
  EXPECT_THAT(json_complaint("{\"edges\": [[0,1]], \"weights\": [1,2]" + series),
              HasSubstr("'weights': expected 1 numbers"));
  EXPECT_THAT(json_complaint("{\"edges\": [[0,1]], \"weights\": [1e300]" + series),
              HasSubstr("'weights' 0: expected a finite number"));
  EXPECT_THAT(json_complaint("{\"edges\": [], \"node_ids\": {\"a\": 0, \"b\": 0}" + series),
              HasSubstr("each node once"));
  EXPECT_THAT(json_complaint("{\"edges\": [], \"node_ids\": {\"a\": 0}" + series),
              HasSubstr("with 2 names"));
}

TEST_F(Series, JsonSeriesIsChecked) {
  EXPECT_THAT(json_complaint("{\"edges\": [], \"X\": []}"), HasSubstr("at least one step"));
  EXPECT_THAT(json_complaint("{\"edges\": [], \"X\": [[1,2],[3]]}"),
              HasSubstr("'X' step 1: expected 2 numbers (at least 1), got 1"));
  EXPECT_THAT(json_complaint("{\"edges\": [], \"X\": [[1,null]]}"),
              HasSubstr("'X' step 0, node 1: expected a finite number, got null"));
  EXPECT_THAT(json_complaint("{\"edges\": [], \"time_periods\": 9000000000}"),
              HasSubstr("'time_periods'"));
  EXPECT_THAT(json_complaint("{\"edges\": [], \"time_periods\": 0}"),
              HasSubstr("at least one period"));
  EXPECT_THAT(json_complaint("{\"edges\": [], \"time_periods\": 2, \"0\": {\"y\": [1]}}"),
              HasSubstr("period '1': expected a member 'y', got null"));
}

}  // namespace
}  // namespace mpssm::data
