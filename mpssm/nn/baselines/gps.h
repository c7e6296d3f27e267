// SPDX-License-Identifier: MIT
// GPS (Rampasek and others, 2022) with graph attention along the edges and Performer attention
// between all nodes. Its positional encodings are columns of the features.
#pragma once

#include <cstdint>
#include <vector>

#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include "mpssm/nn/baselines/graph_attention.h"
#include "mpssm/nn/baselines/layered.h"
#include "mpssm/nn/baselines/performer.h"

namespace mpssm::nn {

/// For each layer, with norms of its own after each sum (`residual` says nothing, and there is no
/// norm before the readout):
///   L = Norm(H + Dropout(GraphAttention(H))),  G = Norm(H + Dropout(Performer(H))),  Y = L + G,
///   H <- Norm(Y + Dropout(Dropout(phi(Y W1 + b1)) W2 + b2)),  W1 [C, 2 C].
/// The rest as in LayeredImpl.
class GpsImpl : public LayeredImpl {
 public:
  GpsImpl(const LayeredOptions& options, std::int64_t heads);

 protected:
  torch::Tensor embed(torch::Tensor h, const graph::Gso& gso) override;

 private:
  struct Layer {
    GraphAttention local{nullptr};
    Performer global{nullptr};
    Norm local_norm{nullptr};
    Norm global_norm{nullptr};
    torch::nn::Linear mlp_in{nullptr};
    torch::nn::Linear mlp_out{nullptr};
    Norm mlp_norm{nullptr};
  };
  std::vector<Layer> layers_;
};
TORCH_MODULE(Gps);

}  // namespace mpssm::nn
