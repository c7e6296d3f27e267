// SPDX-License-Identifier: MIT
// Bridges: the edges whose removal cuts a graph, and those between two nodes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "mpssm/graph/graph.h"

namespace mpssm::graph {

/// An edge {a, b} that is the only way between its ends.
struct Bridge {
  std::int32_t a = 0;
  std::int32_t b = 0;
  std::int64_t far_side = 0;  ///< nodes on b's side once the edge is gone, b among them

  bool operator==(const Bridge&) const = default;
};

/// All bridges of an undirected graph. Self-loops are never bridges.
class Bridges {
 public:
  /// One depth-first search without recursion, O(N + E). Throws std::invalid_argument if the graph
  /// is not symmetric.
  explicit Bridges(const Graph& graph);

  /// Each bridge once, with the smallest node of its component on a's side.
  std::span<const Bridge> all() const { return all_; }

  /// The bridges on every way from node i to node j, in that order, each with i on a's side and j
  /// on b's. None if i = j or if there is no way at all. O(bridges on the ways from i and j to the
  /// smallest node of their component). Throws std::out_of_range if a node does not exist.
  std::vector<Bridge> separating(std::int64_t i, std::int64_t j) const;

 private:
  std::vector<std::int32_t> visit(const Graph& graph);  // the nodes by entry
  void find_bridges(const Graph& graph, std::span<const std::int32_t> order);
  Bridge bridge_above(std::int32_t head) const;

  // Of each node, in the forest of the search.
  std::vector<std::int32_t> parent_;   // kNone: a root
  std::vector<std::int32_t> entry_;    // when it was first seen, counted from 0
  std::vector<std::int32_t> root_;     // of its tree
  std::vector<std::int32_t> subtree_;  // nodes in it and below it
  std::vector<std::int32_t> head_;  // first node seen of those it stays joined to without bridges
  std::vector<Bridge> all_;
};

}  // namespace mpssm::graph
