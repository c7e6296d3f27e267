// SPDX-License-Identifier: MIT
// A graph with some edges taken out and some put in, and what that does to a walk: only the
// difference is propagated, so the cost is that of the part it reaches.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "mpssm/graph/graph.h"
#include "mpssm/graph/gso.h"

namespace mpssm::analysis {

/// Edges src -> dst of a directed graph, either way of an undirected one. Added ones weigh
/// `weight`.
struct GraphEdit {
  using Edge = std::pair<std::int32_t, std::int32_t>;
  std::vector<Edge> remove = {};
  std::vector<Edge> add = {};
  double weight = 1.0;
  bool saw_validation = false;  ///< labels of the validation part had a say: it judges no more

  bool empty() const { return remove.empty() && add.empty(); }
};

/// Whether node j sends to node i. Nodes must exist.
bool has_edge(const graph::Graph& graph, std::int64_t i, std::int64_t j);

/// Throws base::Error if an edge to remove is not there, one to add is, or a node does not exist.
graph::Graph edited(const graph::Graph& graph, const GraphEdit& edit);

/// Nodes whose row or column of the operator differs, ascending: the ends of the edges and, where
/// degrees count, nobody else (their neighbours' entries lie in these columns).
std::vector<std::int32_t> touched_nodes(const GraphEdit& edit);

/// X(0) = C, X(t+1) = A X(t) W (+ C if inputs repeat); the change of X(steps) when A becomes A':
/// D(t+1) = A' D(t) W + (A' - A) X(t) W.
struct StateProblem {
  const graph::Gso& before;
  const graph::Gso& after;                ///< the same nodes
  std::span<const std::int32_t> touched;  ///< where rows or columns differ: touched_nodes()
  std::int64_t channels = 1;
  std::span<const double> input = {};  ///< C [N, channels]
  std::span<const double> w = {};      ///< [channels, channels]; empty: the identity
  std::int64_t steps = 1;
  bool repeats_input = false;  ///< true: the state of a block after `steps` hops
};

struct StateChange {
  std::vector<std::int32_t> nodes = {};  ///< whose state may have changed, ascending
  std::vector<double> before = {};       ///< [nodes, channels] X(steps)
  std::vector<double> after = {};        ///< [nodes, channels]
  std::int64_t products = 0;             ///< entries of A and A' that were multiplied: what it cost
};

/// Exact: equals the two full recurrences to rounding. Touches the nodes within `steps` hops of
/// where the operators differ (twice as many hops for the states that these need).
StateChange changed_states(const StateProblem& problem);

}  // namespace mpssm::analysis
