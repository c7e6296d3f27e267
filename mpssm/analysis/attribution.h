// SPDX-License-Identifier: MIT
// What a state and a prediction of a trained network are made of, node by node.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "mpssm/analysis/model_advice.h"
#include "mpssm/graph/gso.h"
#include "mpssm/nn/graph_module.h"

namespace mpssm::analysis {

struct AttributionQuestion {
  nn::GraphModule& network;  ///< an MP-SSM
  at::Tensor x;              ///< one input: [N, in], or [T, N, in]
  graph::Gso gso;
  std::int64_t target = 0;   ///< node
  std::int64_t block = 1;    ///< counted from 1
  std::int64_t steps = 128;  ///< of the integration
  /// Column of the prediction; -1: the largest one (the predicted class).
  std::int64_t output = -1;
  bool predicts_graphs = false;  ///< the prediction is one row, whatever the target
};

/// The state of a block is linear in what the nodes send into it,
///
///   X_i = sum_j s_j,   s_j = sum_tau (A^tau)_ij u_j B W^tau,
///
/// so node j's Shapley value in any game "the nodes of S speak, the others send nothing" whose
/// worth is linear in X_i is what it adds alone. For the worth <X_i(S), X_i> / ||X_i||^2 that is
/// <s_j, X_i> / ||X_i||^2; they add up to 1. Of block 1, u_j is made of node j's features alone; of
/// later ones, of what the blocks before have left at j. One forward and one backward pass, in
/// double.
StateShares state_shares(const AttributionQuestion& question);

/// Through the whole network, which is not linear, by integrated gradients: the gradient of the
/// output, averaged over the straight way from the baseline (each feature at its mean over the
/// nodes) to x, times x - baseline, added up over the features (and steps) of a node. No Shapley
/// values, but they add up. `steps` forward and backward passes.
PathShares path_shares(const AttributionQuestion& question);

/// Both.
Attribution answer(const AttributionQuestion& question);

}  // namespace mpssm::analysis
