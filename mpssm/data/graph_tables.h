// SPDX-License-Identifier: MIT
// Private to data/: the graph in nodes.csv and edges.csv. All throw base::Error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "mpssm/data/load.h"
#include "mpssm/data/node_index.h"
#include "mpssm/graph/graph.h"
#include "mpssm/io/csv.h"

namespace mpssm::data {

/// A missing column is named with the nearest one there, and `advice` is added.
std::size_t need_column(const io::CsvHeader& table, const std::string& name, const char* advice);

/// Row of each id; the texts belong to the table, which has to stay. Refuses empty and repeated
/// ids, and a table without rows.
NodeIndex index_ids(const io::CsvTable& table, std::size_t column);

/// Whether the table has the two columns that edges have.
bool has_ends(const io::CsvHeader& table);

/// Edges between nodes of a table of nodes. Adds a note about columns that are not used.
graph::Graph read_graph(const std::filesystem::path& path, const NodeIndex& ids,
                        const LoadOptions& options, std::vector<std::string>& notes);

/// Edges that stand alone: the nodes are their ends, numbered by first appearance.
struct CollectedGraph {
  graph::Graph graph;
  std::vector<std::string> node_ids;
  std::vector<std::string> notes = {};  ///< about columns that are not used
};
CollectedGraph collect_graph(io::CsvReader given, const LoadOptions& options);

}  // namespace mpssm::data
