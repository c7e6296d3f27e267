// SPDX-License-Identifier: MIT
// Datasets as the tables that read_folder() takes back.
#include "mpssm/data/save_tables.h"

#include <cmath>
#include <filesystem>
#include <fmt/core.h>
#include <string>
#include <utility>

#include "mpssm/base/error.h"
#include "mpssm/base/printable.h"
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

// Undirected edges once.
std::string edges_text(const graph::Graph& graph, const std::vector<std::string>& ids) {
  const bool undirected = graph.is_symmetric();
  std::string text = graph.is_weighted() ? "src,dst,weight\n" : "src,dst\n";
  for (std::int64_t i = 0; i < graph.num_nodes(); ++i) {
    for (std::int64_t e = graph.row_ptr()[i]; e < graph.row_ptr()[i + 1]; ++e) {
      const std::int64_t source = graph.col()[e];
      if (undirected && source > i) break;  // sorted: the rest is listed from its other end
      text += name_at(ids, source) + "," + name_at(ids, i);
      if (graph.is_weighted()) text += "," + io::number_text(graph.weight()[e]);
      text += "\n";
    }
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
  io::write_file(folder / "edges.csv", edges_text(data.graph, data.node_ids));
}

void write_tables(const fs::path& folder, const GraphsData& data) {
  if (!data.codes.empty()) {
    throw base::Error("tables: expected features that are numbers, got codes of categories");
  }
  const bool of_nodes = data.target.rows != data.num_graphs();
  std::string nodes = "graph,id" + feature_header(data.features) + (of_nodes ? ",label\n" : "\n");
  std::string edges = data.edge_weight.empty() ? "graph,src,dst\n" : "graph,src,dst,weight\n";
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
      edges += graph + "," + node_name(data.edge_src[e]) + "," + node_name(data.edge_dst[e]);
      if (!data.edge_weight.empty()) edges += "," + number_cell(data.edge_weight[e]);
      edges += "\n";
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
  io::write_file(folder / "edges.csv", edges_text(data.graph, ids));
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
