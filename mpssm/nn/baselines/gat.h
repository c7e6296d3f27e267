// SPDX-License-Identifier: MIT
// Graph attention network (Velickovic and others, 2018): a GCN whose operator is learned.
#pragma once

#include <cstdint>
#include <vector>

#include <torch/nn/pimpl.h>

#include "mpssm/nn/baselines/graph_attention.h"
#include "mpssm/nn/baselines/layered.h"

namespace mpssm::nn {

/// H <- [H +] Dropout(phi(GraphAttention(Norm(H)))) for each layer, heads side by side; the rest as
/// in LayeredImpl.
class GatImpl : public LayeredImpl {
 public:
  GatImpl(const LayeredOptions& options, std::int64_t heads);

 protected:
  torch::Tensor layer(std::int64_t index, const torch::Tensor& h, const graph::Gso& gso) override {
    return layers_[index]->forward(h, gso);
  }

 private:
  std::vector<GraphAttention> layers_;
};
TORCH_MODULE(Gat);

}  // namespace mpssm::nn
