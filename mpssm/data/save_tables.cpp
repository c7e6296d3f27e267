// SPDX-License-Identifier: MIT
// Datasets as the tables that read_folder() takes back.
#include "mpssm/data/save_tables.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fmt/core.h>
#include <map>
#include <string>
#include <utility>

#include "mpssm/base/error.h"
#include "mpssm/base/printable.h"
#include "mpssm/data/changing_graph.h"
#include "mpssm/data/edge_table.h"
#include "mpssm/data/edges.h"
#include "mpssm/io/csv.h"
#include "mpssm/io/file.h"

namespace mpssm::data {
namespace {

namespace fs = std::filesystem;

// The shortest text that is the same 32-bit number again.
std::string number_cell(float value) {
  return std::isnan(value) ? std::string() : fmt::format("{}", value);
}

std::string name_at(const std::vector<std::string>& names, std::int64_t i) {
  return names.empty() ? std::to_string(i) : io::csv_cell(names[static_cast<std::size_t>(i)]);
}

std::string label_cell(float value, const std::vector<std::string>& class_names) {
  if (std::isnan(value) || class_names.empty()) return number_cell(value);
  return io::csv_cell(class_names[static_cast<std::size_t>(value)]);
}

std::string part_cell(Part part) {
  return part == Part::kNone ? std::string() : std::string(to_string(part));
}

std::string feature_header(const Matrix& features) {
  std::string text;
  for (std::int64_t c = 0; c < features.columns; ++c) text += fmt::format(",f{}", c);
  return text;
}

void add_features(const Matrix& features, std::int64_t row, std::string& text) {
  for (std::int64_t c = 0; c < features.columns; ++c) {
    text += "," + number_cell(features.values[row * features.columns + c]);
  }
}

std::string column_cells(const EdgeTable& table, std::int64_t row) {
  std::string text;
  for (const EdgeColumn& column : table.columns) {
    text += ",";
    if (row >= 0) text += io::csv_cell(edge_text(column, static_cast<std::size_t>(row)));
  }
  return text;
}

std::string column_header(const EdgeTable& table) {
  std::string text;
  for (const EdgeColumn& column : table.columns) text += "," + io::csv_cell(column.name);
  return text;
}

std::string edges_text(const graph::Graph& graph, const EdgeTable& table,
                       const std::vector<std::string>& ids, bool are_means) {
  std::string text = graph.is_weighted() ? "src,dst,weight" : "src,dst";
  text += column_header(table) + "\n";
  for (const ListedEdge& edge : listed_edges(graph, table, are_means)) {
    text += name_at(ids, edge.src) + "," + name_at(ids, edge.dst);
    if (graph.is_weighted()) text += "," + io::number_text(edge.weight);
    text += column_cells(table, edge.row) + "\n";
  }
  return text;
}

void write_tables(const fs::path& folder, const NodeData& data) {
  std::string nodes = "id" + feature_header(data.features) + "," + io::csv_cell(data.target_name);
  nodes += ",split\n";
  for (std::int64_t i = 0; i < data.features.rows; ++i) {
    nodes += name_at(data.node_ids, i);
    add_features(data.features, i, nodes);
    nodes += "," + label_cell(data.target[i], data.class_names);
    nodes += "," + (data.splits.empty() ? std::string() : part_cell(data.splits[0][i])) + "\n";
  }
  io::write_file(folder / "nodes.csv", nodes);
  io::write_file(folder / "edges.csv",
                 edges_text(data.graph, data.edge_table, data.node_ids, false));
}

using PairOfNodes = std::pair<std::int64_t, std::int64_t>;

std::multimap<PairOfNodes, std::int64_t> rows_by_ends(const EdgeTable& table) {
  std::multimap<PairOfNodes, std::int64_t> rows;
  for (std::size_t row = 0; row < table.src.size(); ++row) {
    rows.emplace(PairOfNodes(table.src[row], table.dst[row]), static_cast<std::int64_t>(row));
  }
  return rows;
}

void write_tables(const fs::path& folder, const GraphsData& data) {
  if (!data.codes.empty()) {
    throw base::Error("tables: expected features that are numbers, got codes of categories");
  }
  const bool of_nodes = data.target.rows != data.num_graphs();
  std::string nodes = "graph,id" + feature_header(data.features) + (of_nodes ? ",label\n" : "\n");
  std::string edges = data.edge_weight.empty() ? "graph,src,dst" : "graph,src,dst,weight";
  edges += column_header(data.edge_table) + "\n";
  const std::multimap<PairOfNodes, std::int64_t> rows_of = rows_by_ends(data.edge_table);
  std::string graphs = "graph";
  for (std::int64_t k = 0; !of_nodes && k < data.target.columns; ++k) {
    graphs += data.target.columns == 1 ? ",label" : fmt::format(",label{}", k);
  }
  graphs += ",split\n";
  for (std::int64_t g = 0; g < data.num_graphs(); ++g) {
    const std::string graph = name_at(data.graph_ids, g);
    const std::int64_t first = data.node_ptr[g];
    const auto node_name = [&](std::int64_t i) {
      return data.node_ids.empty() ? std::to_string(i) : name_at(data.node_ids, first + i);
    };
    for (std::int64_t i = 0; i < data.node_ptr[g + 1] - first; ++i) {
      nodes += graph + "," + node_name(i);
      add_features(data.features, first + i, nodes);
      if (of_nodes) nodes += "," + label_cell(data.target.values[first + i], data.class_names);
      nodes += "\n";
    }
    for (std::int64_t e = data.edge_ptr[g]; e < data.edge_ptr[g + 1]; ++e) {
      std::string edge =
          graph + "," + node_name(data.edge_src[e]) + "," + node_name(data.edge_dst[e]);
      if (!data.edge_weight.empty()) edge += "," + number_cell(data.edge_weight[e]);
      const auto [begin, end] =
          rows_of.equal_range({first + data.edge_src[e], first + data.edge_dst[e]});
      // An edge that was listed one way is read both ways again.
      const bool is_reverse =
          begin == end && rows_of.contains({first + data.edge_dst[e], first + data.edge_src[e]});
      if (begin == end && !is_reverse) edges += edge + column_cells(data.edge_table, -1) + "\n";
      for (auto row = begin; row != end; ++row) {
        edges += edge + column_cells(data.edge_table, row->second) + "\n";
      }
    }
    graphs += graph;
    for (std::int64_t k = 0; !of_nodes && k < data.target.columns; ++k) {
      graphs += "," + label_cell(data.target.values[g * data.target.columns + k], data.class_names);
    }
    graphs += "," + part_cell(data.part[g]) + "\n";
  }
  io::write_file(folder / "nodes.csv", nodes);
  io::write_file(folder / "edges.csv", edges);
  io::write_file(folder / "graphs.csv", graphs);
}

void write_tables(const fs::path& folder, const SeriesData& data) {
  std::string series = "time";
  for (std::int64_t i = 0; i < data.num_nodes; ++i) {
    series += "," + (data.node_ids.empty() ? fmt::format("n{}", i) : name_at(data.node_ids, i));
  }
  series += "\n";
  for (std::int64_t t = 0; t < data.num_steps; ++t) {
    series += std::to_string(t);
    for (std::int64_t i = 0; i < data.num_nodes; ++i) {
      series += "," + number_cell(data.values[(t * data.num_nodes + i) * data.num_features]);
    }
    series += "\n";
  }
  std::vector<std::string> ids = data.node_ids;
  for (std::int64_t i = std::ssize(ids); i < data.num_nodes; ++i)
    ids.push_back(fmt::format("n{}", i));
  io::write_file(folder / "series.csv", series);
  const auto is_time = [](const EdgeColumn& column) {
    return column.name == "time" || column.name == "timestamp" || column.name == "date" ||
           column.name == "step";
  };
  const std::vector<EdgeColumn>& columns = data.edge_table.columns;
  if (!data.changing.of_step.empty() && std::all_of(columns.begin(), columns.end(), is_time)) {
    const bool weighted = is_weighted(data.changing);
    std::string edges = weighted ? "src,dst,time,weight\n" : "src,dst,time\n";
    for (const TimedEdge& edge : timed_edges(data.changing)) {
      edges += fmt::format("{},{},{}", name_at(ids, edge.src), name_at(ids, edge.dst), edge.step);
      if (weighted) edges += "," + number_cell(static_cast<float>(edge.weight));
      edges += "\n";
    }
    io::write_file(folder / "edges.csv", edges);
    return;
  }
  const bool changes = std::any_of(columns.begin(), columns.end(), is_time);
  io::write_file(folder / "edges.csv", edges_text(data.graph, data.edge_table, ids, changes));
}

}  // namespace

void check_new_folder(const fs::path& folder) {
  std::error_code error;
  if (!fs::exists(folder, error)) return;
  if (!fs::is_directory(folder, error)) {
    throw base::Error(
        shown(folder) +
        ": is there already and is no folder; choose another name, or remove it first");
  }
  if (!fs::is_empty(folder, error)) {
    throw base::Error(
        shown(folder) +
        ": expected a new or an empty folder, got one with files in it; name another");
  }
}

void save_tables(const fs::path& folder, const Dataset& dataset) {
  check_new_folder(folder);
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw base::Error(shown(folder) + ": cannot make this folder: " + error.message());
  std::visit([&](const auto& content) { write_tables(folder, content); }, dataset.content);
}

}  // namespace mpssm::data
