// SPDX-License-Identifier: MIT
// Backward through make_gso(): from the gradient of the operator's entries to that of the weights
// of the graph, normalisation included.
#pragma once

#include <span>
#include <vector>

#include "mpssm/graph/graph.h"
#include "mpssm/graph/gso.h"

namespace mpssm::graph {

/// With G = dL/dA for every stored entry of A = make_gso(graph, {.kind = gso.kind()}), the
/// derivative dL/dm of every entry of the graph, in the order of graph.col(). A weight stands in
/// its own entry of A and in the degree of its row, hence in the whole row (and column) of that
/// node:
///
///   D^-1/2 M D^-1/2:  G_ij / sqrt(D_i D_j) - sgn(m) / (2 D_i) sum_k (G_ik A_ik + G_ki A_ki)
///   D^-1 M:           G_ij / D_i           - sgn(m) / D_i     sum_k  G_ik A_ik
///   D - M:            sgn(m) G_ii - G_ij
///
/// An undirected edge is two entries: its derivative is their sum. O(nonzeros). Throws
/// std::invalid_argument if the sizes do not fit, or for an operator without a recipe.
std::vector<double> weight_gradient(const Graph& graph, const Gso& gso,
                                    std::span<const double> entry_gradient);

}  // namespace mpssm::graph
