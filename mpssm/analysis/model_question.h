// SPDX-License-Identifier: MIT
// Questions about a trained network: from what is asked to the numbers of model_answers.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "mpssm/analysis/graph_question.h"
#include "mpssm/analysis/model_answers.h"
#include "mpssm/graph/graph.h"
#include "mpssm/graph/operators.h"
#include "mpssm/nn/graph_module.h"

namespace mpssm::analysis {

/// A network at one of its inputs.
struct ModelQuestion {
  std::string run;
  nn::GraphModule& network;
  at::Tensor x;
  graph::Operators gso;
  graph::Graph graph;            ///< behind the operator
  std::int64_t num_steps = 1;    ///< of a window, for a network over time
  bool predicts_graphs = false;  ///< one prediction for the whole graph, not one for each node
  std::vector<std::int64_t> taus = {};
  // From the features of source to the prediction of target, end to end and inside one block.
  std::int64_t source = -1;  ///< -1: none
  std::int64_t target = -1;
  std::int64_t block = 1;  ///< counted from 1
  bool lambda_star = false;
  bool multi_hop =
      false;  ///< what each block takes from how far, over `targets` or else some nodes
  // What predictions depend on.
  std::vector<std::int64_t> targets = {};
  std::int64_t top = 10;                   ///< how many of the most influential nodes to name
  const ModelQuestion* compare = nullptr;  ///< another network, asked for the same predictions
};

/// 0: the network is no MP-SSM, it has no linear recurrence.
std::int64_t num_blocks(const nn::GraphModule& network);

/// Names of dataset and network are left to the caller.
ModelAnswer answer(const ModelQuestion& question, const Stages& stages = {});

}  // namespace mpssm::analysis
