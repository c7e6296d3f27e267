// SPDX-License-Identifier: MIT
// What a prediction of a whole network depends on: exact Jacobians by automatic differentiation,
// and their sizes by node and by hop distance.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include "mpssm/analysis/model_answers.h"
#include "mpssm/graph/operators.h"
#include "mpssm/nn/graph_module.h"

namespace mpssm::analysis {

/// d y_target / d x at the input x: [out, ...shape of x...]. `target` is a row of the output: a
/// node, or a graph if the network has one output per graph. The network is put into evaluation
/// mode for it. One forward pass and `out` backward passes. Throws std::out_of_range if there is no
/// such row, std::runtime_error if a derivative is not finite.
at::Tensor output_jacobian(nn::GraphModule& model, const at::Tensor& x, const graph::Operators& gso,
                           std::int64_t target);

/// d y_target / d x_source: [out, in] for x [N, in], [out, T in] for x [T, N, in].
at::Tensor pair_jacobian(const at::Tensor& output_jacobian, std::int64_t source);

/// Spectral norm of a matrix: the end-to-end S_ij when given pair_jacobian.
double spectral_norm(const at::Tensor& matrix);

/// I(j) = sum over outputs f and input features g (and time steps) of |d y_target^f / d x_j^g|: the
/// measure of torch_geometric.utils.influence (jacobian_l1), on the whole graph instead of the
/// k-hop subgraph.
std::vector<double> influence_of_nodes(const at::Tensor& output_jacobian);

/// The same by distance, for a target that is a node.
Influence influence_of(const at::Tensor& output_jacobian, const graph::Gso& gso,
                       std::int64_t target);

/// The `count` nodes of largest influence, largest first.
std::vector<std::int64_t> most_influential(std::span<const double> of_node, std::int64_t count);

}  // namespace mpssm::analysis
