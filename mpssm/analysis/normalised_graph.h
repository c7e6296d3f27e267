// SPDX-License-Identifier: MIT
// From an operator back to a graph, for questions about operators that come without one.
#pragma once

#include <optional>

#include "mpssm/graph/graph.h"
#include "mpssm/graph/gso.h"

namespace mpssm::analysis {

/// The undirected graph M, loops included, that gso = D^-1/2 M D^-1/2 was made of, to rounding.
/// Only the loops tell D from M, so they have to weigh 1, as make_gso adds them. nullopt: it is no
/// such operator. O(N + nonzeros).
std::optional<graph::Graph> normalised_graph(const graph::Gso& gso);

/// The directed graph whose weights are the entries of the operator that are not 0.
graph::Graph graph_of_entries(const graph::Gso& gso);

}  // namespace mpssm::analysis
