// SPDX-License-Identifier: MIT
// What a trainer needs to know of a network on a graph.
#pragma once

#include <torch/nn/module.h>

#include "mpssm/graph/gso.h"

namespace mpssm::nn {

class GraphModule : public torch::nn::Module {
 public:
  virtual torch::Tensor forward(const torch::Tensor& x, const graph::Gso& gso) = 0;
};

}  // namespace mpssm::nn
