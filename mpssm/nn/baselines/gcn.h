// SPDX-License-Identifier: MIT
// Graph convolutional network: the usual deep model, one hop and one nonlinearity per layer.
#pragma once

#include <cstdint>
#include <vector>

#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include "mpssm/nn/activation.h"
#include "mpssm/nn/graph_module.h"
#include "mpssm/nn/norm.h"
#include "mpssm/nn/readout.h"

namespace mpssm::nn {

struct GcnOptions {
  std::int64_t in_channels = 1;
  std::int64_t hidden_channels = 64;
  std::int64_t out_channels = 1;
  std::int64_t num_layers = 4;
  Activation activation = Activation::kRelu;
  NormKind norm = NormKind::kNone;  ///< on the input of each layer, and before the readout
  bool residual = false;
  double dropout = 0.0;         ///< on each layer's output
  ReadoutOptions readout = {};  ///< its channels are taken from the above
};

/// H = x E + e;  H <- [H +] Dropout(phi(A Norm(H) W + b)) for each layer;  y = Readout(Norm(H)).
/// x [N, in] -> [N, out], or [G, out] with a readout that pools.
class GcnImpl : public GraphModule {
 public:
  explicit GcnImpl(const GcnOptions& options);

  torch::Tensor forward(const torch::Tensor& x, const graph::Operators& gso) override;

 private:
  GcnOptions options_;
  torch::nn::Linear encoder_{nullptr};
  std::vector<Norm> norms_;
  std::vector<torch::nn::Linear> layers_;
  Norm final_norm_{nullptr};
  ReadoutHead readout_;
};
TORCH_MODULE(Gcn);

}  // namespace mpssm::nn
