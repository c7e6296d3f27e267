// SPDX-License-Identifier: MIT
// What a trainer needs to know of a network on a graph.
#pragma once

#include <torch/nn/module.h>

#include "mpssm/graph/operators.h"

namespace mpssm::nn {

class GraphModule : public torch::nn::Module {
 public:
  virtual torch::Tensor forward(const torch::Tensor& x, const graph::Operators& gso) = 0;
  /// Whether categories among the features may come as numbers, see nn/encode.h; if not, one-hot.
  virtual bool takes_codes() const { return false; }
};

}  // namespace mpssm::nn
