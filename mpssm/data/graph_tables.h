// SPDX-License-Identifier: MIT
// Private to data/: the graph in nodes.csv and edges.csv. All throw base::Error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "mpssm/data/load.h"
#include "mpssm/graph/graph.h"
#include "mpssm/io/csv.h"

namespace mpssm::data {

/// Row of each id; the texts belong to the table.
using Ids = std::unordered_map<std::string_view, std::int64_t>;

/// A missing column is named with the nearest one there, and `advice` is added.
std::size_t need_column(const io::CsvTable& table, const std::string& name, const char* advice);

/// Refuses empty and repeated ids, and a table without rows.
Ids index_ids(const io::CsvTable& table, std::size_t column);

/// Whether the table has the two columns that edges have.
bool has_ends(const io::CsvTable& table);

/// Edges between nodes of a table of nodes. Adds a note about columns that are not used.
graph::Graph read_graph(const std::filesystem::path& path, const Ids& ids,
                        const LoadOptions& options, std::vector<std::string>& notes);

/// Edges that stand alone: the nodes are their ends, numbered by first appearance.
struct CollectedGraph {
  graph::Graph graph;
  std::vector<std::string> node_ids;
  std::vector<std::string> notes = {};  ///< about columns that are not used
};
CollectedGraph collect_graph(const io::CsvTable& table, const LoadOptions& options);

}  // namespace mpssm::data
