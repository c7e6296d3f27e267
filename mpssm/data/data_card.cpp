// SPDX-License-Identifier: MIT
#include "mpssm/data/data_card.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/core.h>
#include <span>

#include "mpssm/graph/distances.h"

namespace mpssm::data {
namespace {

void describe_graph(const graph::Graph& graph, DataCard& card) {
  card.nodes = graph.num_nodes();
  card.edges = graph.num_edges();
  card.directed = !graph.is_symmetric();
  card.weighted = graph.is_weighted();
  const graph::Components parts = graph::components(graph);
  card.components = parts.count;
  std::vector<std::int64_t> size(static_cast<std::size_t>(parts.count), 0);
  for (const std::int32_t part : parts.of_node) ++size[part];
  card.isolated = std::count(size.begin(), size.end(), 1);
}

void count_parts(std::span<const Part> parts, DataCard& card) {
  card.train = std::count(parts.begin(), parts.end(), Part::kTrain);
  card.val = std::count(parts.begin(), parts.end(), Part::kVal);
  card.test = std::count(parts.begin(), parts.end(), Part::kTest);
}

void count_labels(std::span<const float> target, const std::vector<std::string>& class_names,
                  DataCard& card) {
  for (const std::string& name : class_names) card.classes.push_back({name});
  for (const float value : target) {
    if (std::isnan(value)) {
      ++card.unlabelled;
      continue;
    }
    ++card.labelled;
    if (!class_names.empty()) ++card.classes[static_cast<std::size_t>(value)].count;
  }
}

std::optional<DataCard::Homophily> homophily_of(const NodeData& data, std::span<const Part> parts) {
  const auto is_known = [&](std::int64_t i) {
    return parts[i] == Part::kTrain && !std::isnan(data.target[i]);
  };
  std::vector<double> ends(data.class_names.size(), 0.0);
  std::int64_t same = 0;
  std::int64_t entries = 0;
  const auto row_ptr = data.graph.row_ptr();
  for (std::int64_t i = 0; i < data.graph.num_nodes(); ++i) {
    if (!is_known(i)) continue;
    for (std::int64_t e = row_ptr[i]; e < row_ptr[i + 1]; ++e) {
      const std::int64_t j = data.graph.col()[e];
      if (j == i || !is_known(j)) continue;
      ++entries;
      if (data.target[i] == data.target[j]) ++same;
      ends[static_cast<std::size_t>(data.target[i])] += 0.5;
      ends[static_cast<std::size_t>(data.target[j])] += 0.5;
    }
  }
  if (entries == 0) return std::nullopt;
  const auto count = static_cast<double>(entries);
  DataCard::Homophily result{.share = static_cast<double>(same) / count,
                             .edges = data.graph.is_symmetric() ? entries / 2 : entries};
  for (const double of_class : ends) result.by_chance += of_class / count * (of_class / count);
  return result;
}

void describe(const NodeData& data, std::int64_t split, DataCard& card) {
  card.shape = "one graph";
  card.features = data.features.columns;
  if (data.links) {
    describe_graph(data.links->whole, card);
    card.samples = "edges";
    card.train = std::ssize(data.links->edges[0]);
    card.val = std::ssize(data.links->edges[1]);
    card.test = std::ssize(data.links->edges[2]);
    return;
  }
  describe_graph(data.graph, card);
  card.target = data.target_name;
  card.samples = "nodes";
  card.splits = std::ssize(data.splits);
  count_labels(data.target, data.class_names, card);
  if (split >= std::ssize(data.splits)) return;
  const std::vector<Part>& parts = data.splits[static_cast<std::size_t>(split)];
  count_parts(parts, card);
  if (!data.class_names.empty()) card.homophily = homophily_of(data, parts);
}

void describe(const GraphsData& data, std::int64_t, DataCard& card) {
  card.shape = "many graphs";
  card.graphs = data.num_graphs();
  card.nodes = data.node_ptr.back();
  card.edges = data.edge_ptr.back();
  card.directed = true;
  card.components = 0;
  card.target = data.target_names.size() == 1 ? data.target_names[0]
                                              : fmt::format("{} targets", data.target.columns);
  card.features = data.vocabulary.empty() ? data.features.columns : std::ssize(data.vocabulary);
  card.samples = "graphs";
  count_parts(data.part, card);
  if (data.target.columns == 1) {
    count_labels(data.target.values, data.class_names, card);
  } else {
    for (std::int64_t row = 0; row < data.target.rows; ++row) {
      const auto first = data.target.values.begin() + row * data.target.columns;
      const bool is_labelled = std::any_of(first, first + data.target.columns,
                                           [](float value) { return !std::isnan(value); });
      ++(is_labelled ? card.labelled : card.unlabelled);
    }
  }
}

void describe(const SeriesData& data, std::int64_t, DataCard& card) {
  card.shape = "a series on a graph";
  describe_graph(data.graph, card);
  card.features = data.num_features;
  card.series = {.steps = data.num_steps,
                 .lags = data.lags,
                 .horizon = data.horizon,
                 .graphs = std::max<std::int64_t>(std::ssize(data.changing.graphs), 1)};
  card.samples = "windows";
  const WindowSplit split = window_split(data);
  card.train = split.val;
  card.val = split.test - split.val;
  card.test = split.end - split.test;
}

}  // namespace

DataCard make_card(const Dataset& dataset, std::int64_t split) {
  DataCard card{.name = dataset.name,
                .source = dataset.source,
                .task = std::string(to_string(dataset.task)),
                .why = dataset.why,
                .metric = dataset.metric,
                .columns = dataset.columns,
                .split = split,
                .protocol = dataset.protocol};
  std::visit(
      [&](const auto& content) {
        describe(content, split, card);
        for (const EdgeColumn& column : content.edge_table.columns) {
          card.edge_columns.push_back(column.name);
        }
      },
      dataset.content);
  return card;
}

}  // namespace mpssm::data
