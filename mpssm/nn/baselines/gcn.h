// SPDX-License-Identifier: MIT
// Graph convolutional network: the usual deep model, one hop and one nonlinearity per layer.
#pragma once

#include <vector>

#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include "mpssm/nn/baselines/layered.h"

namespace mpssm::nn {

/// H <- [H +] Dropout(phi(A Norm(H) W + b)) for each layer; the rest as in LayeredImpl.
class GcnImpl : public LayeredImpl {
 public:
  explicit GcnImpl(const LayeredOptions& options);

 protected:
  torch::Tensor layer(std::int64_t index, const torch::Tensor& h, const graph::Gso& gso) override;

 private:
  std::vector<torch::nn::Linear> layers_;
};
TORCH_MODULE(Gcn);

}  // namespace mpssm::nn
