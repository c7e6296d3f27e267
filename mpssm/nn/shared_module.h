// SPDX-License-Identifier: MIT
// A network that several ranks train together, each with some of the work.
#pragma once

#include "mpssm/nn/graph_module.h"

namespace mpssm::nn {

class SharedModule : public GraphModule {
 public:
  /// After backward(): leaves the gradient with the parameters of the model, on every rank.
  virtual void collect_gradients() = 0;
};

}  // namespace mpssm::nn
