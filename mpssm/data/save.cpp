// SPDX-License-Identifier: MIT
// Datasets as .npz files that the readers take back.
#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <map>
#include <numeric>
#include <utility>

#include "mpssm/base/error.h"
#include "mpssm/base/printable.h"
#include "mpssm/base/utf8.h"
#include "mpssm/data/changing_graph.h"
#include "mpssm/data/edge_table.h"
#include "mpssm/data/edges.h"
#include "mpssm/data/load.h"
#include "mpssm/data/names.h"
#include "mpssm/data/tasks.h"

namespace mpssm::data {
namespace {

using Arrays = std::map<std::string, io::Array>;
using Shape = std::vector<std::int64_t>;

template <typename T>
io::Array line(const std::vector<T>& values) {
  return io::make_array<T>(values, Shape{std::ssize(values)});
}

io::Array matrix(const Matrix& values) {
  return io::make_array<float>(values.values, Shape{values.rows, values.columns});
}

io::Array name_array(const std::string& name) { return names_array({&name, 1}); }

void add_graph(const graph::Graph& graph, Arrays& arrays) {
  const bool undirected = graph.is_symmetric();
  std::vector<std::int64_t> ends;
  std::vector<double> weights;
  for (std::int64_t i = 0; i < graph.num_nodes(); ++i) {
    for (std::int64_t e = graph.row_ptr()[i]; e < graph.row_ptr()[i + 1]; ++e) {
      const std::int64_t source = graph.col()[e];
      if (undirected && source > i) break;  // sorted: the rest is listed from its other end
      ends.insert(ends.end(), {source, i});
      weights.push_back(graph.weight()[e]);
    }
  }
  const std::int64_t count = std::ssize(weights);
  arrays["edges"] = io::make_array<std::int64_t>(ends, Shape{count, 2});
  if (graph.is_weighted()) arrays["weights"] = line(weights);
  if (!undirected) arrays["directed"] = line(std::vector<std::uint8_t>{1});
}

void add_masks(const NodeData& data, Arrays& arrays) {
  if (data.splits.empty()) return;
  const Shape shape = {std::ssize(data.splits), data.features.rows};
  for (const Part part : {Part::kTrain, Part::kVal, Part::kTest}) {
    std::vector<std::uint8_t> mask;
    for (const std::vector<Part>& split : data.splits) {
      for (const Part at : split) mask.push_back(at == part ? 1 : 0);
    }
    arrays[fmt::format("{}_masks", to_string(part))] = io::make_array<std::uint8_t>(mask, shape);
  }
}

Arrays arrays_of(const NodeData& data) {
  Arrays arrays;
  arrays["node_features"] = matrix(data.features);
  if (data.class_names.empty()) {
    arrays["node_labels"] = line(data.target);
  } else {
    std::vector<std::int64_t> labels;
    for (const float target : data.target) {
      labels.push_back(std::isnan(target) ? -1 : static_cast<std::int64_t>(target));
    }
    arrays["node_labels"] = line(labels);
    arrays["class_names"] = names_array(data.class_names);
  }
  if (!data.node_ids.empty()) arrays["node_ids"] = names_array(data.node_ids);
  arrays["target_name"] = name_array(data.target_name);
  add_graph(data.graph, arrays);
  add_edge_attributes(data.edge_table, arrays);
  add_masks(data, arrays);
  return arrays;
}

Arrays arrays_of(const GraphsData& data) {
  Arrays arrays;
  arrays["node_ptr"] = line(data.node_ptr);
  arrays["edge_ptr"] = line(data.edge_ptr);
  arrays["edge_src"] = line(data.edge_src);
  arrays["edge_dst"] = line(data.edge_dst);
  if (!data.edge_weight.empty()) arrays["edge_weight"] = line(data.edge_weight);
  if (!data.graph_ids.empty()) arrays["graph_ids"] = names_array(data.graph_ids);
  if (!data.node_ids.empty()) arrays["node_ids"] = names_array(data.node_ids);
  if (data.vocabulary.empty()) {
    arrays["node_features"] = matrix(data.features);
  } else {
    arrays["atom_feat"] = io::make_array<std::uint8_t>(
        data.codes, Shape{data.node_ptr.back(), std::ssize(data.vocabulary)});
    arrays["vocabulary"] = line(data.vocabulary);
  }
  Matrix labels = data.target;
  if (!data.class_names.empty()) {
    for (float& value : labels.values) value = std::isnan(value) ? -1.0f : value;
    arrays["class_names"] = names_array(data.class_names);
  }
  arrays["labels"] = matrix(labels);
  if (!data.target_names.empty()) arrays["target_names"] = names_array(data.target_names);
  std::vector<std::uint8_t> split;
  for (const Part part : data.part) split.push_back(static_cast<std::uint8_t>(part));
  arrays["split"] = line(split);
  arrays["label_scale"] = line(std::vector<double>{data.label_scale});
  add_edge_attributes(data.edge_table, arrays);
  return arrays;
}

void add_changing_graph(const ChangingGraph& changing, Arrays& arrays) {
  std::vector<std::int64_t> ends;
  std::vector<double> weights;
  std::vector<std::int64_t> steps;
  for (const TimedEdge& edge : timed_edges(changing)) {
    ends.insert(ends.end(), {edge.src, edge.dst});
    weights.push_back(edge.weight);
    steps.push_back(edge.step);
  }
  arrays["edges"] = io::make_array<std::int64_t>(ends, Shape{std::ssize(weights), 2});
  if (is_weighted(changing)) arrays["weights"] = line(weights);
  if (is_directed(changing)) arrays["directed"] = line(std::vector<std::uint8_t>{1});
  arrays["edge_step"] = line(steps);
}

Arrays arrays_of(const SeriesData& data) {
  Arrays arrays;
  arrays["x"] =
      io::make_array<float>(data.values, Shape{data.num_steps, data.num_nodes, data.num_features});
  if (!data.time_of_day.empty()) arrays["time_in_day"] = line(data.time_of_day);
  if (!data.node_ids.empty()) arrays["node_ids"] = names_array(data.node_ids);
  if (data.changing.of_step.empty()) {
    add_graph(data.graph, arrays);
  } else {
    add_changing_graph(data.changing, arrays);
  }
  add_edge_attributes(data.edge_table, arrays);
  return arrays;
}

}  // namespace

io::Array names_array(std::span<const std::string> names) {
  std::vector<std::uint8_t> bytes;
  for (const std::string& name : names) {
    bytes.insert(bytes.end(), name.begin(), name.end());
    bytes.push_back(0);
  }
  return line(bytes);
}

std::vector<std::string> read_names(const io::Npz& npz, std::string_view array,
                                    std::int64_t count) {
  const std::vector<std::int64_t> bytes = npz.integers(array, Shape{-1});
  const auto found = std::count(bytes.begin(), bytes.end(), 0);
  constexpr std::uint64_t kBytesPerName = 48;
  npz.count_memory(array, kBytesPerName * static_cast<std::uint64_t>(found) + bytes.size());
  std::vector<std::string> names;
  std::string name;
  for (const std::int64_t byte : bytes) {
    if (byte == 0) {
      if (!base::is_utf8(name)) {
        throw base::Error(shown(npz.path()),
                          fmt::format("array '{}': name {}: expected UTF-8, got '{}'", array,
                                      names.size(), base::printable(name)));
      }
      names.push_back(std::exchange(name, {}));
    } else {
      name.push_back(static_cast<char>(byte & 0xff));
    }
  }
  if (name.empty() && (count < 0 || count == std::ssize(names))) return names;
  throw base::Error(shown(npz.path()),
                    fmt::format("array '{}': expected {}names, each ended by a 0, got {}", array,
                                count < 0 ? "" : fmt::format("{} ", count), names.size()));
}

std::string read_metric(const io::Npz& npz, Task task) {
  if (npz.has("metric")) return read_names(npz, "metric", 1)[0];
  return std::string(default_metric(task));
}

void save_npz(const std::filesystem::path& path, const Dataset& dataset) {
  Arrays arrays =
      std::visit([](const auto& content) { return arrays_of(content); }, dataset.content);
  // The reader of series chooses its own protocol.
  if (dataset.task != Task::kForecast) {
    arrays["task"] = name_array(std::string(to_string(dataset.task)));
    arrays["metric"] = name_array(dataset.metric);
  }
  io::write_npz(path, arrays);
}

}  // namespace mpssm::data
