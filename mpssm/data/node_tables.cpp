// SPDX-License-Identifier: MIT
// nodes.csv and edges.csv: ids of any text, features, labels, split.
#include <algorithm>
#include <fmt/core.h>
#include <optional>
#include <utility>

#include "mpssm/base/error.h"
#include "mpssm/base/printable.h"
#include "mpssm/data/edges.h"
#include "mpssm/data/graph_tables.h"
#include "mpssm/data/links.h"
#include "mpssm/data/readers.h"
#include "mpssm/data/split.h"
#include "mpssm/data/tables.h"
#include "mpssm/data/tasks.h"
#include "mpssm/io/csv.h"

namespace mpssm::data {
namespace {

void read_node_features(const io::CsvTable& table, const std::vector<std::size_t>& candidates,
                        const LoadOptions& options, Dataset& dataset, NodeData& data) {
  // The nodes of link prediction are in no part.
  const std::vector<bool> learn =
      data.links ? std::vector<bool>(table.rows.size(), true) : rows_to_learn_from(data.splits[0]);
  if (is_degree(options) && !table.column(kDegree)) {
    return use_degree(learn, &options.columns->front(), data);
  }
  Features features =
      read_table_features(table, candidates, learn, options, dataset.columns, dataset.notes);
  if (features.fitted.empty()) {
    dataset.notes.push_back(shown(table.path) +
                            ": no feature column; the only feature is each node's degree");
    return use_degree(learn, nullptr, data);
  }
  data.columns = std::move(features.fitted);
  data.features = std::move(features.values);
  if (options.columns == nullptr) return;
  for (const std::size_t column : candidates) {
    const std::string& name = table.header[column];
    const bool is_used = std::any_of(data.columns.begin(), data.columns.end(),
                                     [&](const Column& known) { return known.name == name; });
    if (is_used) continue;
    dataset.notes.push_back(fmt::format("{}: column '{}' is ignored: the model does not use it",
                                        shown(table.path), base::printable(name)));
  }
}

void read_split(const io::CsvTable& table, const LoadOptions& options, Dataset& dataset,
                NodeData& data) {
  const std::string where = shown(table.path);
  const auto column = table.column("split");
  const bool predicting = options.columns != nullptr;
  if (column) {
    data.splits = {read_parts(table, *column)};
    dataset.protocol = "split by column 'split'";
    note_unused_seed(where, options, dataset.notes);
  } else if (predicting) {
    data.splits = {all_labelled_in_test(data.target)};
  } else {
    data.splits = {random_split(where, classes_of(data), options.split_seed)};
    dataset.protocol =
        fmt::format("random 50/25/25 split of the labelled nodes, seed {}", options.split_seed);
  }
  if (!predicting) check_splits(where, data, dataset.notes);
}

void read_targets(const io::CsvTable& table, std::optional<std::size_t> labels_at,
                  const LoadOptions& options, Dataset& dataset, NodeData& data) {
  Labels labels;
  if (labels_at) {
    data.target_name = table.header[*labels_at];
    labels = read_labels(table, *labels_at, options, dataset.notes);
  } else {
    labels.target.assign(table.rows.size(), kNoLabel);
    if (options.class_names != nullptr) labels.class_names = *options.class_names;
  }
  dataset.task = choose_node_task(shown(table.path), labels.class_names.size(), options.task);
  dataset.metric = default_metric(dataset.task);
  dataset.why = std::move(labels.why);
  data.target = std::move(labels.target);
  data.class_names = std::move(labels.class_names);
}

std::optional<std::size_t> usual_label(const io::CsvHeader& table) {
  for (const char* name : {"label", "target", "class", "y", "Label", "Target", "Class"}) {
    if (const auto column = table.column(name)) return column;
  }
  return std::nullopt;
}

}  // namespace

void use_degree(const std::vector<bool>& learn, const Column* stored, NodeData& data) {
  const auto row_ptr = data.graph.row_ptr();
  std::vector<double> degree(static_cast<std::size_t>(data.graph.num_nodes()));
  std::vector<double> learned;
  for (std::size_t i = 0; i < degree.size(); ++i) {
    degree[i] = static_cast<double>(row_ptr[i + 1] - row_ptr[i]);
    if (learn[i]) learned.push_back(degree[i]);
  }
  const Column column = stored != nullptr ? *stored : fit_number(std::string(kDegree), learned);
  data.columns = {column};
  data.features = {.rows = data.graph.num_nodes(), .columns = 1};
  for (const double value : degree) {
    data.features.values.push_back(static_cast<float>((value - column.mean) / column.scale));
  }
}

std::optional<std::size_t> label_column(const io::CsvHeader& table, const LoadOptions& options) {
  if (!options.target.empty()) {
    if (const auto column = table.column(options.target)) return column;
    if (options.columns != nullptr) return std::nullopt;
    return need_column(table, options.target, "; data.target names the label column");
  }
  if (const auto column = usual_label(table)) return column;
  // Link prediction learns no column.
  if (options.columns != nullptr || options.task == Task::kLinks) return std::nullopt;
  return need_column(table, "label", "; --target (data.target) names the label column");
}

Dataset read_node_tables(const std::filesystem::path& nodes, const std::filesystem::path& edges,
                         const LoadOptions& options) {
  return read_node_tables(io::read_csv(nodes), io::CsvReader(edges), options);
}

Dataset read_node_tables(const io::CsvTable& table, io::CsvReader edges,
                         const LoadOptions& options) {
  const std::size_t ids_at = id_column(table, options);
  const NodeIndex ids = index_ids(table, ids_at);
  Dataset dataset{.source = shown(table.path) + ", " + shown(edges.head().path)};
  NodeData data;
  data.graph = read_graph(std::move(edges), ids, options, data.edge_table, dataset.notes);
  for (const io::CsvRow row : table.rows) data.node_ids.emplace_back(row[ids_at]);

  const auto labels_at = label_column(table, options);
  if (options.task == Task::kLinks) {
    hold_out_links(shown(table.path), options, dataset, data);
    if (labels_at) {
      dataset.columns.push_back({.name = table.header[*labels_at],
                                 .type = "label",
                                 .unused = "link prediction learns of edges; rename it to use it"});
    }
  } else {
    read_targets(table, labels_at, options, dataset, data);
    read_split(table, options, dataset, data);
  }

  const auto ignored = columns_named(table, "data.ignore", options.ignore);
  std::vector<std::size_t> candidates;
  for (std::size_t column = 0; column < table.header.size(); ++column) {
    const std::string& name = table.header[column];
    if (column == ids_at || column == labels_at || name == "split") continue;
    if (std::find(ignored.begin(), ignored.end(), name) != ignored.end()) {
      dataset.columns.push_back({.name = name, .type = "", .unused = "data.ignore"});
    } else {
      candidates.push_back(column);
    }
  }
  read_node_features(table, candidates, options, dataset, data);
  dataset.content = std::move(data);
  return dataset;
}

Dataset read_edge_table(const std::filesystem::path& edges, const LoadOptions& options) {
  CollectedGraph collected = collect_graph(io::CsvReader(edges), options);
  Dataset dataset{.source = shown(edges), .notes = std::move(collected.notes)};
  NodeData data;
  data.graph = std::move(collected.graph);
  data.node_ids = std::move(collected.node_ids);
  data.edge_table = std::move(collected.edge_table);
  hold_out_links(shown(edges), options, dataset, data);
  dataset.notes.push_back(shown(edges) +
                          ": no table of nodes; they are the ends of the edges, and the only "
                          "feature is each node's degree");
  use_degree(std::vector<bool>(data.node_ids.size(), true),
             is_degree(options) ? &options.columns->front() : nullptr, data);
  dataset.content = std::move(data);
  return dataset;
}

}  // namespace mpssm::data
