// SPDX-License-Identifier: MIT
// Private to data/: from the edges of a file to a graph, every index checked.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mpssm/data/load.h"
#include "mpssm/graph/graph.h"
#include "mpssm/io/npz.h"

namespace mpssm::data {

/// A path as the start of a message.
std::string shown(const std::filesystem::path& path);

/// "columns 'a', 'b'": at most five names and how many more, for a message.
std::string listed(const std::string& what, const std::vector<std::string>& names);

/// Graph::take_edges with its complaints as base::Error that starts with `where`. Refuses
/// weights that add up to more at a node than 32 bits hold: operators have float entries.
graph::Graph make_graph(const std::string& where, graph::CompactEdgeList edges,
                        graph::Direction direction);

/// Arrays 'edges' [m, 2] or 'edge_index' [2, m], and 'weights' or 'edge_weight' [m] if there.
/// Throws base::Error naming the position of an index outside [0, num_nodes).
graph::CompactEdgeList read_edges(const io::Npz& npz, std::int64_t num_nodes);

/// Counts the memory of a graph that is about to be made of an array, see io::Npz::count_memory.
void count_graph(const io::Npz& npz, std::string_view array, std::int64_t num_nodes,
                 std::int64_t num_edges);

/// Throws base::Error naming `place` unless 0 <= node < num_nodes.
void check_node(const std::string& place, std::int64_t node, std::int64_t num_nodes);

enum class Merge {
  kMean,  ///< (M + M') / 2; left as they are if no pair is listed in both directions
  kMax,   ///< max(M, M')
};
/// One weight |w| for each undirected edge; edges without weights come back as they are. Repeated
/// edges are added up first.
graph::CompactEdgeList symmetrise(graph::CompactEdgeList edges, Merge merge);

/// The graph of a series: undirected by symmetrise() unless one way is asked for, then with the
/// weights as listed.
graph::Graph make_series_graph(const std::string& where, graph::CompactEdgeList edges, Merge merge,
                               std::optional<EdgeUse> use);

}  // namespace mpssm::data
