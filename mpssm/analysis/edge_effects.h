// SPDX-License-Identifier: MIT
// The derivative of a network's loss with respect to every edge of its graph, in one pass.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "mpssm/analysis/model_advice.h"
#include "mpssm/graph/graph.h"
#include "mpssm/graph/gso.h"
#include "mpssm/nn/graph_module.h"

namespace mpssm::analysis {

/// A loss of whatever network is handed in, on one graph; a scalar with gradient.
using NetworkLoss = std::function<at::Tensor(nn::GraphModule&)>;

struct EdgesQuestion {
  nn::GraphModule& network;  ///< an MP-SSM
  graph::Graph graph;
  graph::Gso gso;  ///< made of it, by one of the recipes
  NetworkLoss loss;
  std::string part = {};      ///< of the data, for the answer
  std::int64_t count = 10;    ///< edges listed, harmful and useful each
  std::int64_t confirm = 10;  ///< so many of the harmful ones are tried
};

/// dL/dm for every entry of the graph, in the order of graph.col(): with L(t+1) the gradient of
/// X(t+1), dL/dA_uv = sum_t <L(t+1)_u, (X(t) W)_v> over all blocks, then back through the
/// normalisation (graph/gso_gradient.h). One forward and one backward pass, in the memory of the
/// states of one block. Throws std::invalid_argument if the network has no linear recurrence or
/// precision does not allow for it.
std::vector<double> edge_gradient(const EdgesQuestion& question, double* loss = nullptr);

/// Self-loops are left out.
EdgesAnswer answer(const EdgesQuestion& question);

}  // namespace mpssm::analysis
