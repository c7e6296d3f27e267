// SPDX-License-Identifier: MIT
// nodes.csv and edges.csv: ids of any text, features, labels, split.
#include <algorithm>
#include <fmt/core.h>
#include <limits>
#include <utility>

#include "mpssm/base/error.h"
#include "mpssm/base/printable.h"
#include "mpssm/data/edges.h"
#include "mpssm/data/graph_tables.h"
#include "mpssm/data/readers.h"
#include "mpssm/data/split.h"
#include "mpssm/data/tables.h"
#include "mpssm/data/tasks.h"
#include "mpssm/io/csv.h"

namespace mpssm::data {
namespace {

constexpr std::string_view kDegree = "degree";  // the feature of tables that have none

// Features of tables that have none: the number of neighbours, by a stored column or a new one.
void use_degree(NodeData& data, const Column* stored) {
  const auto row_ptr = data.graph.row_ptr();
  std::vector<double> degree(static_cast<std::size_t>(data.graph.num_nodes()));
  for (std::size_t i = 0; i < degree.size(); ++i) {
    degree[i] = static_cast<double>(row_ptr[i + 1] - row_ptr[i]);
  }
  const Column column = stored != nullptr ? *stored : fit_number(std::string(kDegree), degree);
  data.columns = {column};
  data.features = {.rows = data.graph.num_nodes(), .columns = 1};
  for (const double value : degree) {
    data.features.values.push_back(static_cast<float>((value - column.mean) / column.scale));
  }
}

void read_features(const io::CsvTable& table, const std::vector<std::size_t>& columns,
                   const LoadOptions& options, NodeData& data, std::vector<std::string>& notes) {
  if (options.columns != nullptr && !options.columns->empty()) {
    const std::vector<Column>& stored = *options.columns;
    if (columns.empty() && stored.size() == 1 && stored[0].name == kDegree) {
      return use_degree(data, &stored[0]);
    }
    data.features = apply_columns(table, stored, notes);
    data.columns = stored;
    for (const std::size_t column : columns) {
      const std::string& name = table.header[column];
      const bool is_used = std::any_of(stored.begin(), stored.end(),
                                       [&](const Column& known) { return known.name == name; });
      if (!is_used) {
        notes.push_back(
            fmt::format("{}: column '{}' is ignored: the training table had none of that name",
                        shown(table.path), base::printable(name)));
      }
    }
    return;
  }
  if (columns.empty()) {
    notes.push_back(shown(table.path) +
                    ": no feature column; the only feature is each node's degree");
    return use_degree(data, nullptr);
  }
  for (const std::size_t column : columns) {
    data.columns.push_back(fit_column(table, column, options.standardise.value_or(true), notes));
  }
  data.features = apply_columns(table, data.columns, notes);
}

Part part_at(const io::CsvTable& table, std::size_t row, std::size_t column) {
  const std::string_view cell = table.rows[row][column];
  if (cell.empty() || cell == "none") return Part::kNone;
  if (cell == "train" || cell == "0") return Part::kTrain;
  if (cell == "val" || cell == "valid" || cell == "validation" || cell == "1") return Part::kVal;
  if (cell == "test" || cell == "2") return Part::kTest;
  throw base::Error(table.place(row, column),
                    fmt::format("expected train, val, test (or 0, 1, 2) or an empty cell, got '{}'",
                                base::printable(cell)));
}

void read_split(const io::CsvTable& table, const LoadOptions& options, Dataset& dataset,
                NodeData& data) {
  const std::string where = shown(table.path);
  const auto column = table.column("split");
  const bool predicting = options.columns != nullptr;
  std::vector<Part> split(table.rows.size(), Part::kNone);
  if (column) {
    for (std::size_t row = 0; row < split.size(); ++row) split[row] = part_at(table, row, *column);
    dataset.protocol = "split by column 'split'";
    note_unused_seed(where, options, dataset.notes);
  } else if (predicting) {
    split = all_labelled_in_test(data.target);
  } else {
    split = random_split(where, classes_of(data), options.split_seed);
    dataset.protocol =
        fmt::format("random 50/25/25 split of the labelled nodes, seed {}", options.split_seed);
  }
  data.splits = {std::move(split)};
  if (!predicting) check_splits(where, data, dataset.notes);
}

}  // namespace

Dataset read_node_tables(const std::filesystem::path& nodes, const std::filesystem::path& edges,
                         const LoadOptions& options) {
  const io::CsvTable table = io::read_csv(nodes);
  const std::size_t id_column = need_column(table, "id", "");
  const NodeIndex ids = index_ids(table, id_column);
  Dataset dataset{.source = shown(nodes) + ", " + shown(edges)};
  NodeData data;
  data.graph = read_graph(edges, ids, options, dataset.notes);
  data.target_name = options.target.empty() ? "label" : options.target;
  auto label_column = table.column(data.target_name);
  if (!label_column && options.columns == nullptr) {
    label_column = need_column(table, data.target_name, "; data.target names the label column");
  }

  std::vector<std::size_t> features;
  for (std::size_t column = 0; column < table.header.size(); ++column) {
    const bool is_feature =
        column != id_column && column != label_column && table.header[column] != "split";
    if (is_feature) features.push_back(column);
  }
  read_features(table, features, options, data, dataset.notes);

  Labels labels;
  if (label_column) {
    labels = read_labels(table, *label_column, options, dataset.notes);
  } else {
    labels.target.assign(table.rows.size(), std::numeric_limits<float>::quiet_NaN());
    if (options.class_names != nullptr) labels.class_names = *options.class_names;
    labels.task = choose_node_task(shown(nodes), labels.class_names.size(), options.task);
  }
  data.target = std::move(labels.target);
  data.class_names = std::move(labels.class_names);
  dataset.task = labels.task;
  dataset.metric = default_metric(labels.task);
  for (const io::CsvRow row : table.rows) data.node_ids.emplace_back(row[id_column]);
  read_split(table, options, dataset, data);
  dataset.content = std::move(data);
  return dataset;
}

}  // namespace mpssm::data
