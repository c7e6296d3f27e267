// SPDX-License-Identifier: MIT
// Private to data/: the graph in nodes.csv and edges.csv. All throw base::Error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "mpssm/data/load.h"
#include "mpssm/data/node_index.h"
#include "mpssm/graph/graph.h"
#include "mpssm/io/csv.h"

namespace mpssm::data {

/// A missing column is named with the nearest one there, and `advice` is added.
std::size_t need_column(const io::CsvHeader& table, const std::string& name, const char* advice);

/// The column of ids: data.id, or 'id', 'node_id' or 'node'.
std::size_t id_column(const io::CsvHeader& table, const LoadOptions& options);

/// The column of labels: data.target, or 'label', 'target', 'class' or 'y'; nullopt: there is none,
/// and a trained model needs none.
std::optional<std::size_t> label_column(const io::CsvHeader& table, const LoadOptions& options);

/// Row of each id; the texts belong to the table, which has to stay. Refuses empty and repeated
/// ids, and a table without rows.
NodeIndex index_ids(const io::CsvTable& table, std::size_t column);

/// The columns of the ends of edges: 'src' and 'dst', 'source' and 'target', 'from' and 'to'.
std::pair<std::size_t, std::size_t> end_columns(const io::CsvHeader& table);

/// Whether the table has the two columns that edges have.
bool has_ends(const io::CsvHeader& table);

/// Edges between nodes of a table of nodes. What else there is of them goes into `kept`, with a
/// note.
graph::Graph read_graph(io::CsvReader edges, const NodeIndex& ids, const LoadOptions& options,
                        EdgeTable& kept, std::vector<std::string>& notes);

/// Features of nodes that have none: the number of their neighbours, by a stored column or by one
/// that is fitted to the nodes in `learn`.
void use_degree(const std::vector<bool>& learn, const Column* stored, NodeData& data);

/// Edges that stand alone: the nodes are their ends, numbered by first appearance.
struct CollectedGraph {
  graph::Graph graph;
  std::vector<std::string> node_ids;
  EdgeTable edge_table = {};
  std::vector<std::string> notes = {};  ///< about columns that are not used
};
CollectedGraph collect_graph(io::CsvReader given, const LoadOptions& options);

}  // namespace mpssm::data
