// SPDX-License-Identifier: MIT
// Immutable graph: a checked edge list in compressed sparse rows, alone or as a batch of graphs.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "mpssm/graph/edge_list.h"

namespace mpssm::graph {

/// A graph, cheap to copy (the arrays are shared and never change).
///
/// Row i lists the nodes j that send to i, sorted: an edge src -> dst is the entry (dst, src), so
/// that `A X` moves features along the edges. A batch is one graph with several parts and no edge
/// between them.
class Graph {
 public:
  /// The graph with no node.
  Graph();

  /// Checks and sorts. Repeated entries are merged by adding their weights if weights are given,
  /// and count once if not. Reading backwards (`kUndirected`) never doubles a self-loop, nor an
  /// edge that is listed in both directions with one weight.
  /// Throws base::Error naming the offending edge (out of range, non-finite weight, sizes that
  /// differ, two directions listed with different weights as undirected: that one has a hint).
  static Graph from_edges(const EdgeList& edges, Direction direction = Direction::kUndirected);
  /// The same of a list that is given away: its memory is free before that of the graph is
  /// complete.
  static Graph take_edges(CompactEdgeList edges, Direction direction = Direction::kUndirected);

  std::int64_t num_nodes() const;
  /// Stored entries: an undirected edge counts twice, a self-loop once.
  std::int64_t num_entries() const;
  /// Undirected: pairs {i, j} plus self-loops. Directed: entries.
  std::int64_t num_edges() const;
  std::int64_t num_self_loops() const;
  bool is_symmetric() const;  ///< pattern and weights equal their transpose
  bool is_weighted() const;

  std::span<const std::int64_t> row_ptr() const;  ///< [N + 1]
  std::span<const std::int32_t> col() const;      ///< [num_entries]
  std::span<const double> weight() const;         ///< [num_entries], all ones if unweighted

  /// First node of each part of a batch, and N at the end: {0, N} for a single graph.
  std::span<const std::int64_t> graph_ptr() const;
  std::int64_t num_graphs() const;

 private:
  struct Data;
  explicit Graph(std::shared_ptr<const Data> data);
  template <typename Edges>
  static Graph build(Edges& edges, Direction direction);
  friend Graph make_batch(std::span<const Graph> graphs);
  std::shared_ptr<const Data> data_;
};

/// Disjoint union: node ids of graph g are shifted by the sizes of those before it. Batches nest.
Graph make_batch(std::span<const Graph> graphs);

}  // namespace mpssm::graph
