// SPDX-License-Identifier: MIT
// Attention of every node to every other of its graph in linear time, by random features
// (Choromanski and others, 2021).
#pragma once

#include <cstdint>

#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include "mpssm/graph/gso.h"

namespace mpssm::nn {

/// Softmax attention with exp(q . k / sqrt(d)) replaced by f(q) . f(k): with the fixed matrix R
/// [m, d] of orthogonal Gaussian rows, m = max(1, floor(d ln d)), and u' = u / d^(1/4),
///   f(u) = exp(R u' - |u'|^2 / 2 - s) + 1e-4.
/// s is the largest of the numbers R u' - |u'|^2 / 2 of the query, and of all keys of the graph; it
/// counts as a constant in the gradient, as the network is usually written. For each head, with
/// q, k, v = h Q, h K, h V:
///   y_i = (sum_j f(q_i) . f(k_j) v_j) / (sum_j f(q_i) . f(k_j)),  heads side by side, times O + o.
/// h [N, C] -> [N, C]; nodes attend to those of their own graph.
class PerformerImpl : public torch::nn::Module {
 public:
  /// Throws c10::ValueError unless the heads share the channels evenly.
  PerformerImpl(std::int64_t channels, std::int64_t heads);

  torch::Tensor forward(const torch::Tensor& h, const graph::Gso& gso);

 private:
  torch::Tensor features(const torch::Tensor& rows, bool is_query) const;

  std::int64_t heads_;
  torch::nn::Linear query_{nullptr};  // these three without bias
  torch::nn::Linear key_{nullptr};
  torch::nn::Linear value_{nullptr};
  torch::nn::Linear out_{nullptr};
  torch::Tensor directions_;  // R, a buffer
};
TORCH_MODULE(Performer);

}  // namespace mpssm::nn
