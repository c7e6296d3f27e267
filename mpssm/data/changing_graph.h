// SPDX-License-Identifier: MIT
// Private to data/: the graphs of a series whose edges change with time.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mpssm/data/dataset.h"
#include "mpssm/data/load.h"
#include "mpssm/graph/graph.h"

namespace mpssm::data {

/// Edges and the time of each, in the unit of `times_of_steps`, which ascends. The edges of one
/// time are the whole graph from then on, until the next time that any edge has; steps before the
/// first time have the first graph. Each is made by make_series_graph(). `where` begins messages.
ChangingGraph changing_graph(const std::string& where, const graph::CompactEdgeList& edges,
                             std::span<const double> times, std::span<const double> times_of_steps,
                             std::optional<EdgeUse> use);

/// One edge for each pair in its direction, with the mean of the weights that it is listed with.
graph::CompactEdgeList with_mean_weights(graph::CompactEdgeList edges);

/// The way back: every graph's edges, once for each run of steps that has it, with the first of
/// these steps. An undirected edge comes once, unless another graph runs one way.
struct TimedEdge {
  std::int32_t src = 0;
  std::int32_t dst = 0;
  double weight = 1.0;
  std::int64_t step = 0;
};
std::vector<TimedEdge> timed_edges(const ChangingGraph& changing);

/// What a user should know, without the file.
std::string note_of_changing_graph(const ChangingGraph& changing);

/// True if any of the graphs runs one way.
bool is_directed(const ChangingGraph& changing);

/// True if any of the graphs has weights other than 1.
bool is_weighted(const ChangingGraph& changing);

}  // namespace mpssm::data
