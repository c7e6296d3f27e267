// SPDX-License-Identifier: MIT
// Edge list: what files and callers hand in, before anything is checked.
#pragma once

#include <cstdint>
#include <vector>

namespace mpssm::graph {

/// Edges src[e] -> dst[e] with weight[e]; an empty `weight` means that every edge weighs 1.
struct EdgeList {
  std::int64_t num_nodes = 0;
  std::vector<std::int64_t> src = {};
  std::vector<std::int64_t> dst = {};
  std::vector<double> weight = {};
};

/// The same in half the memory, for lists of many millions: Graph::take_edges() frees it on the
/// way.
struct CompactEdgeList {
  std::int64_t num_nodes = 0;
  std::vector<std::int32_t> src = {};
  std::vector<std::int32_t> dst = {};
  std::vector<double> weight = {};
};

/// Whether each listed edge is also read backwards.
enum class Direction { kUndirected, kDirected };

}  // namespace mpssm::graph
