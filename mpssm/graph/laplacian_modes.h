// SPDX-License-Identifier: MIT
// The lowest eigenvectors of the Laplacian of each connected part of a graph: where its nodes are.
#pragma once

#include <cstdint>
#include <vector>

#include "mpssm/graph/distances.h"
#include "mpssm/graph/graph.h"

namespace mpssm::graph {

/// The `count` lowest eigenpairs beyond the trivial one of I - D^-1/2 M D^-1/2, where M is
/// (|weight| + |weight|') / 2 without self-loops and D its row sums.
struct LaplacianModes {
  std::vector<double> eigenvalues;  ///< [count], ascending; those of fewer nodes end with zeros
  /// [nodes, count], columns orthonormal, the first large entry of each above zero; zeros where
  /// there are fewer than count + 1 nodes.
  std::vector<double> vectors;
};

/// Of the nodes of one connected part, in the order given. By full decomposition if it is small,
/// else by subspace iteration: with a sparse inverse where one can be had, with Chebyshev
/// polynomials of M elsewhere. Equal eigenvalues come as often as they are there; which basis of
/// their eigenvectors is then a matter of the build, but always the same one in it. Residuals are
/// below 1e-7, unless 300 rounds do not get there.
LaplacianModes laplacian_modes(const Graph& graph, const std::vector<std::int32_t>& nodes,
                               std::int64_t count);

/// The nodes of each connected part, ascending.
std::vector<std::vector<std::int32_t>> nodes_of_parts(const Components& parts);

}  // namespace mpssm::graph
