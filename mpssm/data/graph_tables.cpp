// SPDX-License-Identifier: MIT
// Tables as graphs: the ids of the nodes, the ends and weights of the edges.
#include "mpssm/data/graph_tables.h"

#include <array>
#include <cmath>
#include <filesystem>
#include <fmt/core.h>
#include <limits>
#include <optional>
#include <utility>

#include "mpssm/base/error.h"
#include "mpssm/base/nearest.h"
#include "mpssm/base/printable.h"
#include "mpssm/data/edges.h"

namespace mpssm::data {
namespace {

using Ends = std::pair<std::size_t, std::size_t>;  // columns

std::string header_of(const io::CsvHeader& table) {
  std::string names;
  for (const std::string& name : table.header) names += (names.empty() ? "" : ", ") + name;
  return base::printable(names, 200);
}

std::optional<Ends> find_ends(const io::CsvHeader& table) {
  constexpr std::array<std::pair<const char*, const char*>, 3> kNames = {
      {{"src", "dst"}, {"source", "target"}, {"from", "to"}}};
  for (const auto& [first, second] : kNames) {
    const auto a = table.column(first);
    const auto b = table.column(second);
    if (a && b) return Ends(*a, *b);
  }
  return std::nullopt;
}

Ends end_columns(const io::CsvHeader& table) {
  if (const auto ends = find_ends(table)) return *ends;
  throw base::Error(shown(table.path) +
                    ": expected columns 'src' and 'dst' (or 'source' and 'target', or 'from' "
                    "and 'to'), got " +
                    header_of(table));
}

double weight_at(const io::CsvReader& reader, std::size_t column) {
  const std::string_view cell = reader.cells()[column];
  const auto number = io::to_number(cell);
  if (number && std::abs(*number) <= std::numeric_limits<float>::max()) return *number;
  throw base::Error(
      reader.place(column),
      fmt::format("expected a {}, got '{}'", number ? "number that fits 32 bits" : "finite number",
                  base::printable(cell)));
}

// Row by row, each end by node_at(column); the number of nodes is left to the caller.
template <typename NodeAt>
graph::CompactEdgeList list_edges(io::CsvReader& reader, const NodeAt& node_at) {
  const auto [src, dst] = end_columns(reader.head());
  const auto weight = reader.head().column("weight");
  graph::CompactEdgeList edges;
  const std::size_t max_rows = reader.max_rows();
  edges.src.reserve(max_rows);
  edges.dst.reserve(max_rows);
  if (weight) edges.weight.reserve(max_rows);
  while (reader.next()) {
    edges.src.push_back(static_cast<std::int32_t>(node_at(src)));
    edges.dst.push_back(static_cast<std::int32_t>(node_at(dst)));
    if (weight) edges.weight.push_back(weight_at(reader, *weight));
  }
  return edges;
}

void note_other_columns(const io::CsvHeader& table, std::vector<std::string>& notes) {
  const auto [src, dst] = end_columns(table);
  std::vector<std::string> others;
  for (std::size_t column = 0; column < table.header.size(); ++column) {
    const bool is_used = column == src || column == dst || table.header[column] == "weight";
    if (!is_used) others.push_back(table.header[column]);
  }
  if (others.empty()) return;
  notes.push_back(fmt::format("{}: not used: {}; an edge has two ends and a weight",
                              shown(table.path), listed("column", others)));
}

graph::Graph graph_of(const std::filesystem::path& path, graph::CompactEdgeList edges,
                      const LoadOptions& options) {
  const bool directed = options.directed.value_or(false);
  return make_graph(shown(path), std::move(edges),
                    directed ? graph::Direction::kDirected : graph::Direction::kUndirected);
}

}  // namespace

std::size_t need_column(const io::CsvHeader& table, const std::string& name, const char* advice) {
  if (const auto column = table.column(name)) return *column;
  const std::vector<std::string_view> names(table.header.begin(), table.header.end());
  const std::string_view near = base::nearest(name, names);
  throw base::Error(
      shown(table.path),
      fmt::format("expected a column '{}', got {}{}{}", base::printable(name), header_of(table),
                  near.empty() ? "" : " (did you mean '" + base::printable(near) + "'?)", advice));
}

NodeIndex index_ids(const io::CsvTable& table, std::size_t column) {
  if (table.rows.empty()) {
    throw base::Error(shown(table.path) + ": expected at least one node, got the header only");
  }
  NodeIndex ids(table.rows.size(), [&table, column](std::int64_t row) {
    return table.rows[static_cast<std::size_t>(row)][column];
  });
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    const std::string_view id = table.rows[row][column];
    if (id.empty()) throw base::Error(table.place(row, column) + ": expected an id, got none");
    const auto [first, is_new] = ids.add(id);
    if (is_new) continue;
    throw base::Error(table.place(row, column),
                      fmt::format("expected each id once, got '{}' again, first in line {}",
                                  base::printable(id), table.line[first]));
  }
  return ids;
}

bool has_ends(const io::CsvHeader& table) { return find_ends(table).has_value(); }

graph::Graph read_graph(const std::filesystem::path& path, const NodeIndex& ids,
                        const LoadOptions& options, std::vector<std::string>& notes) {
  graph::CompactEdgeList edges;
  {
    io::CsvReader reader(path);  // gone with its text before the graph is made
    edges = list_edges(reader, [&](std::size_t column) {
      const std::string_view id = reader.cells()[column];
      const std::int64_t node = ids.find(id);
      if (node >= 0) return node;
      throw base::Error(
          reader.place(column),
          fmt::format("expected an id of the table of nodes, got '{}'", base::printable(id)));
    });
    note_other_columns(reader.head(), notes);
  }
  edges.num_nodes = ids.size();
  return graph_of(path, std::move(edges), options);
}

CollectedGraph collect_graph(io::CsvReader given, const LoadOptions& options) {
  CollectedGraph result;
  std::optional<io::CsvReader> reader(std::move(given));
  const io::CsvHeader head = reader->head();
  NodeIndex ids(reader->max_rows(), [&result](std::int64_t node) {
    return std::string_view(result.node_ids[static_cast<std::size_t>(node)]);
  });
  graph::CompactEdgeList edges = list_edges(*reader, [&](std::size_t column) {
    const std::string_view id = reader->cells()[column];
    if (id.empty()) throw base::Error(reader->place(column) + ": expected an id, got none");
    const auto [node, is_new] = ids.add(id);
    if (is_new) result.node_ids.emplace_back(id);
    return node;
  });
  reader.reset();
  if (edges.src.empty()) {
    throw base::Error(shown(head.path) + ": expected at least one edge, got the header only");
  }
  edges.num_nodes = ids.size();
  note_other_columns(head, result.notes);
  result.graph = graph_of(head.path, std::move(edges), options);
  return result;
}

}  // namespace mpssm::data
