// SPDX-License-Identifier: MIT
// One layer of graph attention, for the networks that have it.
#pragma once

#include <cstdint>

#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include "mpssm/graph/gso.h"

namespace mpssm::nn {

/// y_i = || over the heads of sum_j alpha_ij h_j W, plus b, where alpha_ij is the softmax over the
/// entries (i, j) of A, whatever their values, of leaky_relu_0.2(h_i W p + h_j W q); each head has
/// its own C / heads columns of W and its own p and q. h [N, C] -> [N, C].
class GraphAttentionImpl : public torch::nn::Module {
 public:
  /// Throws c10::ValueError unless the heads share the channels evenly.
  GraphAttentionImpl(std::int64_t channels, std::int64_t heads);

  torch::Tensor forward(const torch::Tensor& h, const graph::Gso& gso);

 private:
  std::int64_t heads_;
  torch::nn::Linear map_{nullptr};  // W, without its bias
  torch::Tensor to_;                // p: [heads, C / heads]
  torch::Tensor from_;              // q
  torch::Tensor bias_;
};
TORCH_MODULE(GraphAttention);

}  // namespace mpssm::nn
