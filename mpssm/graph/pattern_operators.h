// SPDX-License-Identifier: MIT
// Operators that are made of where another one has entries, whatever their values: the neighbours
// of a node, and the nodes at an exact distance from it.
#pragma once

#include <cstdint>
#include <vector>

#include "mpssm/graph/gso.h"

namespace mpssm::graph {

/// Row i is the mean over the nodes j != i with an entry (i, j); zero if there is none.
Gso neighbour_mean(const Gso& pattern);

/// A(1), ..., A(farthest): A(d)_ij = 1 / sqrt(n_i n_j) where the shortest way from j to i has d
/// hops, n_i being how many such j a node i has. A way takes entries of the pattern, (i, j) from j
/// to i. As many entries as there are pairs of nodes at these distances.
std::vector<Gso> exact_distance_operators(const Gso& pattern, std::int64_t farthest);

}  // namespace mpssm::graph
