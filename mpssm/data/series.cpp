// SPDX-License-Identifier: MIT
// Series of measurements as arrays, and the protocols that cut them into windows.
#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <optional>
#include <utility>

#include "mpssm/base/error.h"
#include "mpssm/base/printable.h"
#include "mpssm/data/changing_graph.h"
#include "mpssm/data/edge_table.h"
#include "mpssm/data/edges.h"
#include "mpssm/data/names.h"
#include "mpssm/data/period.h"
#include "mpssm/data/readers.h"

namespace mpssm::data {
namespace {

using Shape = std::vector<std::int64_t>;
constexpr std::int64_t kLongSeries = 200;

const char* value_array(const io::Npz& npz) {
  for (const char* name : {"x", "values", "speed"}) {
    if (npz.has(name)) return name;
  }
  throw base::Error(shown(npz.path()) +
                    ": expected measurements in an array 'x', 'values' or 'speed', got none");
}

void read_values(const io::Npz& npz, SeriesData& series) {
  const std::string name = value_array(npz);
  const Shape shape = npz.header(name).shape;
  if (shape.size() < 2 || shape.size() > 3 || shape[0] < 1 || shape[1] < 1 || shape.back() < 1) {
    throw base::Error(shown(npz.path()),
                      fmt::format("array '{}': expected shape [steps, nodes] or [steps, nodes, "
                                  "features], none of them 0, got {} axes",
                                  name, shape.size()));
  }
  series.num_steps = shape[0];
  series.num_nodes = shape[1];
  series.num_features = shape.size() == 3 ? shape[2] : 1;
  // Values that are not finite are let through, for finish_series to say where they are.
  series.values = npz.floats(name, shape, nullptr, true);
  // Training keeps a standardised copy.
  npz.count_memory(name, series.values.size() * 2 * sizeof(float));
}

// Edges on their way through symmetrise(): as listed, and twice as a pair to be sorted.
void count_pairs(const io::Npz& npz, const char* array, std::int64_t num_edges) {
  constexpr std::uint64_t kBytesPerEdge = 88;
  npz.count_memory(array, kBytesPerEdge * static_cast<std::uint64_t>(num_edges));
}

graph::CompactEdgeList read_listed_edges(const io::Npz& npz, std::int64_t num_nodes) {
  graph::CompactEdgeList edges = read_edges(npz, num_nodes);
  if (!edges.weight.empty()) count_pairs(npz, "weights", std::ssize(edges.weight));
  return edges;
}

graph::CompactEdgeList read_adjacency(const io::Npz& npz, std::int64_t num_nodes) {
  const std::vector<float> adjacency = npz.floats("adj", Shape{num_nodes, num_nodes});
  const auto zeros = std::count(adjacency.begin(), adjacency.end(), 0.0f);
  const std::int64_t count = std::ssize(adjacency) - zeros;
  count_pairs(npz, "adj", count);
  count_graph(npz, "adj", num_nodes, count / 2);
  graph::CompactEdgeList edges{.num_nodes = num_nodes};
  for (std::int64_t i = 0; i < num_nodes; ++i) {
    for (std::int64_t j = 0; j < num_nodes; ++j) {
      const float weight = adjacency[i * num_nodes + j];
      if (weight == 0.0f) continue;
      edges.src.push_back(static_cast<std::int32_t>(i));
      edges.dst.push_back(static_cast<std::int32_t>(j));
      edges.weight.push_back(weight);
    }
  }
  return edges;
}

/// As asked for, or as save_npz() has marked it.
std::optional<EdgeUse> edge_use(const io::Npz& npz, const LoadOptions& options) {
  const bool one_way = npz.has("directed") && npz.integers("directed", Shape{1})[0] != 0;
  return options.directed || !one_way ? options.directed : EdgeUse::kForward;
}

graph::Graph read_graph(const io::Npz& npz, std::int64_t num_nodes, const LoadOptions& options) {
  if (!npz.has("adj") && !npz.has("edges") && !npz.has("edge_index")) {
    throw base::Error(shown(npz.path()) +
                      ": expected a graph in an array 'edges', 'edge_index' or 'adj', got none");
  }
  const bool is_matrix = npz.has("adj");
  return make_series_graph(
      shown(npz.path()),
      is_matrix ? read_adjacency(npz, num_nodes) : read_listed_edges(npz, num_nodes),
      is_matrix ? Merge::kMax : Merge::kMean, edge_use(npz, options));
}

/// 'edge_step': the step from which on an edge of 'edges' is there, with all others of that step.
void read_changing_graph(const io::Npz& npz, const LoadOptions& options, SeriesData& series) {
  if (npz.has("adj")) {
    throw base::Error(shown(npz.path()) +
                      ": array 'edge_step': expected edges in an array 'edges' "
                      "or 'edge_index', got 'adj'");
  }
  const graph::CompactEdgeList edges = read_listed_edges(npz, series.num_nodes);
  const std::vector<std::int64_t> first = npz.integers("edge_step", Shape{std::ssize(edges.src)});
  constexpr std::uint64_t kBytesPerEdge = 160;
  npz.count_memory("edge_step", kBytesPerEdge * first.size());
  for (std::size_t e = 0; e < first.size(); ++e) {
    if (first[e] >= 0 && first[e] < series.num_steps) continue;
    throw base::Error(shown(npz.path()),
                      fmt::format("array 'edge_step': [{}]: expected a step from 0 to {}, got {}",
                                  e, series.num_steps - 1, first[e]));
  }
  std::vector<double> steps(static_cast<std::size_t>(series.num_steps));
  for (std::size_t t = 0; t < steps.size(); ++t) steps[t] = static_cast<double>(t);
  const std::vector<double> times(first.begin(), first.end());
  const std::optional<EdgeUse> use = edge_use(npz, options);
  series.changing = changing_graph(shown(npz.path()), edges, times, steps, use);
  series.graph = make_series_graph(shown(npz.path()), with_mean_weights(edges), Merge::kMean, use);
}

void read_clock(const io::Npz& npz, SeriesData& series) {
  series.time_of_day = npz.floats("time_in_day", Shape{series.num_steps});
  for (std::size_t t = 0; t < series.time_of_day.size(); ++t) {
    if (series.time_of_day[t] >= 0.0f && series.time_of_day[t] < 1.0f) continue;
    throw base::Error(shown(npz.path()),
                      fmt::format("array 'time_in_day': [{}]: expected a time in [0, 1), got {}", t,
                                  series.time_of_day[t]));
  }
}

// Readings may be missing (NaN), if a node has others; what else there is of a step may not.
void check_values(const std::string& where, const SeriesData& series) {
  std::vector<bool> has_reading(static_cast<std::size_t>(series.num_nodes), false);
  for (std::size_t i = 0; i < series.values.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i) / series.num_features;
    const bool is_reading = static_cast<std::int64_t>(i) % series.num_features == 0;
    if (std::isfinite(series.values[i])) {
      if (is_reading) has_reading[row % series.num_nodes] = true;
    } else if (!is_reading || !std::isnan(series.values[i])) {
      throw base::Error(
          where, fmt::format("step {}, node {}: expected a finite number, got {}{}",
                             row / series.num_nodes, row % series.num_nodes, series.values[i],
                             is_reading ? "" : "; only what is forecast may have gaps"));
    }
  }
  const auto none = std::find(has_reading.begin(), has_reading.end(), false);
  if (none == has_reading.end()) return;
  const auto node = none - has_reading.begin();
  throw base::Error(where,
                    fmt::format("node '{}': expected values, got none",
                                series.node_ids.empty() ? std::to_string(node)
                                                        : base::printable(series.node_ids[node])));
}

// Up to six digits, without the zeros at the end.
std::string short_number(double value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

std::int64_t count_gaps(const SeriesData& series) {
  return std::count_if(series.values.begin(), series.values.end(),
                       [](float value) { return std::isnan(value); });
}

std::string describe(const SeriesData& series) {
  const WindowSplit split = window_split(series);
  std::string text = fmt::format(
      "{} steps in, {} out; windows in time order: {} train, {} val, {} test; ", series.lags,
      series.horizon, split.val, split.test - split.val, split.end - split.test);
  text += series.standardise ? "inputs standardised by the training windows" : "values as stored";
  if (series.null_value) text += "; targets of " + short_number(*series.null_value) + " left out";
  if (count_gaps(series) > 0) text += "; missing targets left out";
  return text;
}

}  // namespace

SeriesProtocol temporal_protocol(std::int64_t lags) {
  return {.lags = lags,
          .rule = WindowRule::kTrainThenTest,
          .train_ratio = 0.9,
          .standardise = false,
          .metric = "mse"};
}

SeriesProtocol traffic_protocol() { return {.lags = 12, .horizon = 12, .null_value = 0.0f}; }

Dataset finish_series(const std::filesystem::path& path, SeriesData series,
                      const SeriesProtocol& protocol, const LoadOptions& options) {
  const std::int64_t own_lags = series.num_steps >= kLongSeries ? 12 : 4;
  if (options.task && *options.task != Task::kForecast) {
    throw base::Error(shown(path), fmt::format("a series is for task forecast, got {}",
                                               to_string(*options.task)));
  }
  series.lags = options.lags.value_or(protocol.lags > 0 ? protocol.lags : own_lags);
  series.horizon = options.horizon.value_or(protocol.horizon);
  series.rule = protocol.rule;
  series.train_ratio = options.train_ratio.value_or(protocol.train_ratio);
  if (options.train_ratio) series.test_ratio = (1.0 - series.train_ratio) * 2.0 / 3.0;
  series.standardise = options.standardise.value_or(protocol.standardise);
  series.null_value = protocol.null_value;
  check_values(shown(path), series);
  series.period = options.period.value_or(protocol.period);
  Dataset dataset{.task = Task::kForecast, .metric = protocol.metric, .source = shown(path)};
  try {
    dataset.protocol = describe(series);
    if (series.period == 0.0) {
      series.period =
          clock_period(series, window_split(series).val + series.lags + series.horizon - 1);
    }
  } catch (const base::Error& error) {
    // One window is enough to forecast from.
    if (options.columns == nullptr) throw error.within(shown(path));
  }
  if (const std::int64_t gaps = count_gaps(series); gaps > 0) {
    dataset.notes.push_back(fmt::format(
        "{}: {} of {} values are missing: left out of losses and errors; in the inputs the last "
        "one before stands for them (data.fill, data.mark_missing)",
        shown(path), gaps, series.num_steps * series.num_nodes));
  }
  dataset.content = std::move(series);
  return dataset;
}

Dataset read_series_npz(const io::Npz& npz, const io::Npz* graph, const SeriesProtocol& protocol,
                        const LoadOptions& options) {
  SeriesData series;
  read_values(npz, series);
  const io::Npz& of_graph = graph != nullptr ? *graph : npz;
  if (of_graph.has("edge_step")) {
    read_changing_graph(of_graph, options, series);
  } else {
    series.graph = read_graph(of_graph, series.num_nodes, options);
  }
  if (npz.has("time_in_day")) read_clock(npz, series);
  std::vector<std::string> notes;
  if (!series.changing.of_step.empty()) {
    notes.push_back(shown(of_graph.path()) + ": " + note_of_changing_graph(series.changing));
  }
  if (npz.has("listed_edges")) {
    series.edge_table = read_edge_attributes(npz, series.num_nodes, {}, {});
    note_kept(shown(npz.path()), series.edge_table, notes);
  }
  if (npz.has("node_ids")) series.node_ids = read_names(npz, "node_ids", series.num_nodes);
  const io::Npz& named = npz.has("sensor_ids") || graph == nullptr ? npz : *graph;
  if (series.node_ids.empty() && named.has("sensor_ids")) {
    for (const std::int64_t id : named.integers("sensor_ids", Shape{series.num_nodes})) {
      series.node_ids.push_back(std::to_string(id));
    }
  }
  Dataset dataset = finish_series(npz.path(), std::move(series), protocol, options);
  dataset.notes.insert(dataset.notes.begin(), notes.begin(), notes.end());
  if (graph != nullptr) dataset.source += ", " + shown(graph->path());
  return dataset;
}

}  // namespace mpssm::data
