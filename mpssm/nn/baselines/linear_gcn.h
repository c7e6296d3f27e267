// SPDX-License-Identifier: MIT
// GCNs without a nonlinearity between hops: the steps between a GCN and an MP-SSM.
#pragma once

#include <cstdint>
#include <vector>

#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include "mpssm/nn/activation.h"
#include "mpssm/nn/encode.h"
#include "mpssm/nn/graph_module.h"
#include "mpssm/nn/readout.h"

namespace mpssm::nn {

struct LinearGcnOptions {
  std::int64_t in_channels = 1;
  Vocabulary vocabulary = {};  ///< of the features that are categories, see encode.h
  std::int64_t hidden_channels = 64;
  std::int64_t out_channels = 1;
  std::int64_t num_blocks = 1;
  std::int64_t hops = 4;  ///< of each block
  bool shared = false;    ///< one weight for all hops of a block instead of one for each
  bool mlp = false;       ///< two linear layers with `activation` between them after each block
  Activation activation = Activation::kTanh;
  double input_dropout = 0.0;   ///< on H at the start
  ReadoutOptions readout = {};  ///< its channels are taken from the above
};

/// H = x E + e;  in each block H <- A H W + b for each hop, then H <- MLP(H);  y = Readout(H).
/// No input at later hops, no residual, no norm. x [N, in] -> [N, out], or [G, out].
class LinearGcnImpl : public GraphModule {
 public:
  explicit LinearGcnImpl(const LinearGcnOptions& options);

  torch::Tensor forward(const torch::Tensor& x, const graph::Operators& gso) override;
  bool takes_codes() const override {
    return can_take_codes(options_.in_channels, options_.vocabulary);
  }

 private:
  LinearGcnOptions options_;
  torch::nn::Linear encoder_{nullptr};
  std::vector<torch::nn::Linear> hops_;  // [blocks * hops], or [blocks] if shared
  std::vector<torch::nn::Linear> mlp_in_;
  std::vector<torch::nn::Linear> mlp_out_;
  ReadoutHead readout_;
};
TORCH_MODULE(LinearGcn);

}  // namespace mpssm::nn
