// SPDX-License-Identifier: MIT
// Hop distances on a graph: breadth-first search and what follows from it.
#pragma once

#include <cstdint>
#include <vector>

#include "mpssm/graph/breadth_first.h"
#include "mpssm/graph/graph.h"

namespace mpssm::graph {

/// Hops from `source` along the edges, kUnreachable where there is no way. O(N + E).
/// Throws std::out_of_range if the node does not exist.
std::vector<std::int32_t> distances_from(const Graph& graph, std::int64_t source);

/// For every node, the largest finite distance from it. O(N (N + E)).
std::vector<std::int32_t> eccentricities(const Graph& graph);

/// Largest finite distance between two nodes; for a disconnected graph the largest over its
/// components, 0 for the empty graph. O(N (N + E)).
std::int64_t diameter(const Graph& graph);

/// Component of each node, numbered by first appearance; edges are taken as undirected.
struct Components {
  std::vector<std::int32_t> of_node;  ///< [N]
  std::int64_t count = 0;
};
Components components(const Graph& graph);
bool is_connected(const Graph& graph);  ///< one component; true for one node, false for none

}  // namespace mpssm::graph
