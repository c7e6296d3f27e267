// SPDX-License-Identifier: MIT
// Graphs alone: tables are read here, all else by load().
#include "mpssm/data/bare_graph.h"

#include <algorithm>
#include <filesystem>
#include <fmt/core.h>
#include <string_view>
#include <utility>
#include <variant>

#include "mpssm/base/error.h"
#include "mpssm/base/nearest.h"
#include "mpssm/base/printable.h"
#include "mpssm/data/edges.h"
#include "mpssm/data/graph_tables.h"
#include "mpssm/data/paths.h"
#include "mpssm/graph/named.h"
#include "mpssm/io/csv.h"

namespace mpssm::data {
namespace {

namespace fs = std::filesystem;

BareGraph read_edges_alone(io::CsvReader table, const LoadOptions& options) {
  CollectedGraph collected = collect_graph(std::move(table), options);
  return {.graph = std::move(collected.graph),
          .node_ids = std::move(collected.node_ids),
          .notes = std::move(collected.notes)};
}

BareGraph read_tables(const io::CsvTable& nodes, const fs::path& edges,
                      const LoadOptions& options) {
  const std::size_t ids = id_column(nodes, options);
  BareGraph result;
  EdgeTable not_needed;
  result.graph =
      read_graph(io::CsvReader(edges), index_ids(nodes, ids), options, not_needed, result.notes);
  for (const io::CsvRow row : nodes.rows) result.node_ids.emplace_back(row[ids]);
  return result;
}

BareGraph read_bare_folder(const fs::path& folder, const LoadOptions& options) {
  const fs::path nodes = folder / "nodes.csv";
  const fs::path edges = folder / "edges.csv";
  if (!is_file(edges)) {
    throw base::Error(shown(folder) + ": expected a folder with edges.csv, got none there");
  }
  if (is_file(nodes)) return read_tables(io::read_csv(nodes), edges, options);
  BareGraph result = read_edges_alone(io::CsvReader(edges), options);
  result.notes.push_back(shown(folder) + ": no nodes.csv; the nodes are the ends of the edges");
  return result;
}

// A table of edges or of nodes: by its name if that says it, else by its columns.
BareGraph read_table(const fs::path& path, const LoadOptions& options) {
  const fs::path folder = path.parent_path();
  if (path.filename() == "edges.csv" && is_file(folder / "nodes.csv")) {
    return read_bare_folder(folder, options);
  }
  io::CsvReader table(path);
  const bool is_nodes = path.filename() == "nodes.csv" ||
                        (!has_ends(table.head()) && table.head().column("id").has_value());
  if (is_nodes) return read_tables(io::read_csv(std::move(table)), folder / "edges.csv", options);
  return read_edges_alone(std::move(table), options);
}

BareGraph graph_in(Dataset dataset) {
  BareGraph result{.name = dataset.name, .notes = std::move(dataset.notes)};
  const auto take = [&](auto& content) {
    result.graph = content.graph;
    result.node_ids = std::move(content.node_ids);
  };
  if (auto* nodes = std::get_if<NodeData>(&dataset.content)) {
    take(*nodes);
  } else if (auto* series = std::get_if<SeriesData>(&dataset.content)) {
    take(*series);
  } else {
    const std::int64_t count = std::get<GraphsData>(dataset.content).num_graphs();
    throw base::Error(base::printable(dataset.name, 200),
                      fmt::format("expected one graph, got many ({})", count));
  }
  return result;
}

}  // namespace

BareGraph load_graph(const std::string& name_or_path, const LoadOptions& options) {
  const fs::path path = name_or_path;
  const bool is_table = is_file(path) && is_csv(path);
  if (is_name(name_or_path) || (!is_folder(path) && !is_table)) {
    return graph_in(load(name_or_path, options));
  }
  BareGraph result = is_table ? read_table(path, options) : read_bare_folder(path, options);
  result.name = name_of(path);
  return result;
}

BareGraph make_graph(const std::string& spec, std::uint64_t seed) {
  return {.name = spec, .graph = graph::make_named(spec, seed)};
}

BareGraph load_or_make_graph(const std::string& what, const LoadOptions& options,
                             std::uint64_t seed) {
  if (!graph::is_named(what) || is_name(what) || fs::exists(what)) return load_graph(what, options);
  return make_graph(what, seed);
}

std::int64_t find_node(const BareGraph& graph, const std::string& id) {
  const std::string expected = base::printable(graph.name, 200) + ": expected a node";
  const std::int64_t num_nodes = graph.graph.num_nodes();
  if (graph.node_ids.empty()) {
    const auto number = io::to_integer(id);
    if (number && *number >= 0 && *number < num_nodes) return *number;
    throw base::Error(fmt::format(
        "{}{}, got '{}'", expected,
        num_nodes == 0 ? " of a graph that has none" : fmt::format(" from 0 to {}", num_nodes - 1),
        base::printable(id)));
  }
  const auto found = std::find(graph.node_ids.begin(), graph.node_ids.end(), id);
  if (found != graph.node_ids.end()) return found - graph.node_ids.begin();
  const std::vector<std::string_view> known(graph.node_ids.begin(), graph.node_ids.end());
  const std::string_view near = base::nearest(id, known);
  throw base::Error(fmt::format("{} by its id, got '{}'{}", expected, base::printable(id),
                                near.empty()
                                    ? "; the first id is '" + base::printable(known.front()) + "'"
                                    : " (did you mean '" + base::printable(near) + "'?)"));
}

}  // namespace mpssm::data
