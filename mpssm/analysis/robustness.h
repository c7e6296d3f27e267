// SPDX-License-Identifier: MIT
// How far a prediction's state can move when features of some nodes move: a bound that holds, and
// what a search finds.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "mpssm/analysis/model_advice.h"
#include "mpssm/graph/gso.h"
#include "mpssm/nn/graph_module.h"

namespace mpssm::analysis {

struct RobustnessQuestion {
  nn::GraphModule& network;  ///< an MP-SSM with one prediction for each node
  at::Tensor x;              ///< one input: [N, in], or [T, N, in]
  graph::Gso gso;
  std::int64_t target = 0;
  std::vector<std::int64_t> nodes = {};  ///< whose features move
  double epsilon = 0.1;                  ///< ||dx_j|| of each at most (of a series, in every step)
  bool of_classes = false;
  double scale = 1.0;  ///< of numbers that are predicted
  std::int64_t search_steps = 40;
};

/// In a block, ||dX_i|| <= sum_tau sum_j |A^tau|_ij ||B W^tau|| ||du_j||: a walk with |A|. Between
/// blocks, a norm over channels stretches by no more than max|scale| / s, s the smallest deviation
/// that a channel vector within reach has; an MLP by its matrices' norms and the steepest slope of
/// its activation; a residual adds. All nodes are bounded block by block, so the bound holds for
/// the whole network, and grows with its depth. The search goes uphill on ||dX_i|| from two starts.
/// In double. Throws std::invalid_argument for a network that has no linear recurrence.
Robustness answer(const RobustnessQuestion& question);

}  // namespace mpssm::analysis
