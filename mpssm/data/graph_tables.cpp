// SPDX-License-Identifier: MIT
// Tables as graphs: the ids of the nodes, the ends and weights of the edges.
#include "mpssm/data/graph_tables.h"

#include <array>
#include <cmath>
#include <fmt/core.h>
#include <functional>
#include <iterator>
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
using NodeAt = std::function<std::int64_t(std::size_t row, std::size_t column)>;

std::string header_of(const io::CsvTable& table) {
  std::string names;
  for (const std::string& name : table.header) names += (names.empty() ? "" : ", ") + name;
  return base::printable(names, 200);
}

std::optional<Ends> find_ends(const io::CsvTable& table) {
  constexpr std::array<std::pair<const char*, const char*>, 3> kNames = {
      {{"src", "dst"}, {"source", "target"}, {"from", "to"}}};
  for (const auto& [first, second] : kNames) {
    const auto a = table.column(first);
    const auto b = table.column(second);
    if (a && b) return Ends(*a, *b);
  }
  return std::nullopt;
}

Ends end_columns(const io::CsvTable& table) {
  if (const auto ends = find_ends(table)) return *ends;
  throw base::Error(shown(table.path) +
                    ": expected columns 'src' and 'dst' (or 'source' and 'target', or 'from' "
                    "and 'to'), got " +
                    header_of(table));
}

// Row by row; the number of nodes is left to the caller.
graph::EdgeList list_edges(const io::CsvTable& table, const NodeAt& node_at) {
  const auto [src, dst] = end_columns(table);
  const auto weight = table.column("weight");
  graph::EdgeList edges;
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    edges.src.push_back(node_at(row, src));
    edges.dst.push_back(node_at(row, dst));
    if (!weight) continue;
    const auto number = io::to_number(table.rows[row][*weight]);
    if (!number || std::abs(*number) > std::numeric_limits<float>::max()) {
      throw base::Error(table.place(row, *weight),
                        fmt::format("expected a {}, got '{}'",
                                    number ? "number that fits 32 bits" : "finite number",
                                    base::printable(table.rows[row][*weight])));
    }
    edges.weight.push_back(*number);
  }
  return edges;
}

void note_other_columns(const io::CsvTable& table, std::vector<std::string>& notes) {
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

graph::Graph graph_of(const io::CsvTable& table, const graph::EdgeList& edges,
                      const LoadOptions& options) {
  const bool directed = options.directed.value_or(false);
  return make_graph(shown(table.path), edges,
                    directed ? graph::Direction::kDirected : graph::Direction::kUndirected);
}

}  // namespace

std::size_t need_column(const io::CsvTable& table, const std::string& name, const char* advice) {
  if (const auto column = table.column(name)) return *column;
  const std::vector<std::string_view> names(table.header.begin(), table.header.end());
  const std::string_view near = base::nearest(name, names);
  throw base::Error(
      shown(table.path),
      fmt::format("expected a column '{}', got {}{}{}", base::printable(name), header_of(table),
                  near.empty() ? "" : " (did you mean '" + base::printable(near) + "'?)", advice));
}

Ids index_ids(const io::CsvTable& table, std::size_t column) {
  if (table.rows.empty()) {
    throw base::Error(shown(table.path) + ": expected at least one node, got the header only");
  }
  Ids ids;
  ids.reserve(table.rows.size());
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    const std::string& id = table.rows[row][column];
    if (id.empty()) throw base::Error(table.place(row, column) + ": expected an id, got none");
    const auto [found, is_new] = ids.emplace(id, row);
    if (is_new) continue;
    throw base::Error(table.place(row, column),
                      fmt::format("expected each id once, got '{}' again, first in line {}",
                                  base::printable(id), table.line[found->second]));
  }
  return ids;
}

bool has_ends(const io::CsvTable& table) { return find_ends(table).has_value(); }

graph::Graph read_graph(const std::filesystem::path& path, const Ids& ids,
                        const LoadOptions& options, std::vector<std::string>& notes) {
  const io::CsvTable table = io::read_csv(path);
  graph::EdgeList edges = list_edges(table, [&](std::size_t row, std::size_t column) {
    const std::string& id = table.rows[row][column];
    const auto found = ids.find(id);
    if (found != ids.end()) return found->second;
    throw base::Error(
        table.place(row, column),
        fmt::format("expected an id of the table of nodes, got '{}'", base::printable(id)));
  });
  edges.num_nodes = std::ssize(ids);
  note_other_columns(table, notes);
  return graph_of(table, edges, options);
}

CollectedGraph collect_graph(const io::CsvTable& table, const LoadOptions& options) {
  CollectedGraph result;
  Ids ids;
  graph::EdgeList edges = list_edges(table, [&](std::size_t row, std::size_t column) {
    const std::string& id = table.rows[row][column];
    if (id.empty()) throw base::Error(table.place(row, column) + ": expected an id, got none");
    const auto [found, is_new] = ids.emplace(id, std::ssize(ids));
    if (is_new) result.node_ids.push_back(id);
    return found->second;
  });
  if (edges.src.empty()) {
    throw base::Error(shown(table.path) + ": expected at least one edge, got the header only");
  }
  edges.num_nodes = std::ssize(ids);
  note_other_columns(table, result.notes);
  result.graph = graph_of(table, edges, options);
  return result;
}

}  // namespace mpssm::data
