// SPDX-License-Identifier: MIT
// One MP-SSM block: the linear recurrence on the graph, then a 2-layer MLP at every node.
#pragma once

#include <cstdint>

#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include "mpssm/graph/gso.h"
#include "mpssm/nn/activation.h"
#include "mpssm/nn/norm.h"
#include "mpssm/nn/state_matrix.h"
#include "mpssm/ops/plan.h"

namespace mpssm::nn {

/// Static: one input for all nodes, kept constant for k + 1 steps. Temporal: a sequence.
enum class Mode { kStatic, kTemporal };

struct BlockOptions {
  std::int64_t in_channels = 32;
  std::int64_t state_channels = 32;  ///< C, width of the recurrence
  std::int64_t out_channels = 32;
  std::int64_t hidden_channels = 0;  ///< of the MLP; 0: as state_channels
  std::int64_t hops = 4;             ///< k, static mode only: k + 1 steps reach k hops
  StateMatrixOptions state = {};     ///< its `channels` is taken from state_channels
  Activation activation = Activation::kGelu;
  /// Norm on X before the MLP. X is a sum of k + 1 terms and grows with k; the paper's strict block
  /// has none (kNone).
  NormKind state_norm = NormKind::kLayer;
  /// Width of an extra linear map on X before the norm; 0: none. Only diagonalise() sets it.
  std::int64_t mix_channels = 0;
  double dropout = 0.0;  ///< inside the MLP, after the activation
  ops::Plan plan = ops::Plan::kAuto;
  std::int64_t operator_calls = 1;  ///< on one graph, see ops::RecurrenceOptions
};

/// Y = MLP(X),  X(t+1) = A X(t) W + U(t+1) B,  X(0) = 0,  MLP(X) = phi(norm(X) W1 + b1) W2 + b2.
///
/// Static:   u [..., N, in]    -> y [..., N, out], from the state after `hops` hops.
/// Temporal: u [..., T, N, in] -> y [..., T, N, out] (kAll) or [..., N, out] (kLast).
class BlockImpl : public torch::nn::Module {
 public:
  explicit BlockImpl(const BlockOptions& options);

  torch::Tensor forward(const torch::Tensor& u, const graph::Gso& gso, Mode mode = Mode::kStatic,
                        ops::Outputs outputs = ops::Outputs::kLast);

  /// X alone: what the MLP reads.
  torch::Tensor recur(const torch::Tensor& u, const graph::Gso& gso, Mode mode = Mode::kStatic,
                      ops::Outputs outputs = ops::Outputs::kLast);
  /// The MLP with its norm, at every node by itself.
  torch::Tensor decode(const torch::Tensor& x);

  const BlockOptions& options() const { return options_; }

  torch::Tensor w_in;            ///< B: [in, C]
  StateMatrix w_state{nullptr};  ///< W
  torch::Tensor w_out;           ///< [C, mix_channels], undefined if there is none
  Norm state_norm{nullptr};
  torch::nn::Linear mlp_in{nullptr};   ///< W1, b1
  torch::nn::Linear mlp_out{nullptr};  ///< W2, b2

 private:
  BlockOptions options_;
};
TORCH_MODULE(Block);

}  // namespace mpssm::nn
