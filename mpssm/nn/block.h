// SPDX-License-Identifier: MIT
// One MP-SSM block: the linear recurrence on the graph, then a 2-layer MLP at every node.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include "mpssm/engine/plan.h"
#include "mpssm/engine/precision.h"
#include "mpssm/engine/row_place.h"
#include "mpssm/graph/operators.h"
#include "mpssm/nn/activation.h"
#include "mpssm/nn/entries.h"
#include "mpssm/nn/factors.h"
#include "mpssm/nn/norm.h"
#include "mpssm/nn/state_matrix.h"

namespace mpssm::nn {

/// Static: one input for all nodes, kept constant for k + 1 steps. Temporal: a sequence.
enum class Mode { kStatic, kTemporal };

struct BlockOptions {
  std::int64_t in_channels = 32;
  std::int64_t state_channels = 32;  ///< C, width of the recurrence
  std::int64_t out_channels = 32;
  std::int64_t hidden_channels = 0;  ///< of the MLP; 0: as state_channels
  std::int64_t hops = 4;             ///< k, static mode only: k + 1 steps reach k hops
  std::int64_t hops_per_step = 1;    ///< temporal mode only, see ops::RecurrenceOptions
  /// Shares of the groups of channels that have operators of their own. Empty: one for all.
  std::vector<std::int64_t> group_shares = {};
  StateMatrixOptions state = {};  ///< its channels and groups are taken from the above
  Activation activation = Activation::kGelu;
  /// Norm on X before the MLP. X is a sum of k + 1 terms and grows with k; the paper's strict block
  /// has none (kNone).
  NormKind state_norm = NormKind::kLayer;
  /// Width of an extra linear map on X before the norm; 0: none. Only diagonalise() sets it.
  std::int64_t mix_channels = 0;
  double dropout = 0.0;  ///< inside the MLP, after the activation
  /// Where A's entries come from; learned ones take plans stepwise and diagonal.
  EntriesKind entries = EntriesKind::kFixed;
  std::int64_t num_entries = 0;  ///< of kFree: nonzeros of the operator
  /// Of a group whose operator is adaptive; rank 0: there is none. Binds the block to its nodes.
  FactorsOptions factors = {.num_nodes = 0, .rank = 0};
  engine::Plan plan = engine::Plan::kAuto;
  std::shared_ptr<const engine::PlanCosts> plan_costs = {};  ///< of kAuto; null: the built-in ones
  std::int64_t operator_calls = 1;  ///< on one graph, see ops::RecurrenceOptions
  /// Of products and states inside the block; its parameters, input and output are float.
  engine::Precision precision = engine::Precision::kFloat32;
};

/// Y = MLP(X),  X(t+1) = A X(t) W + U(t+1) B,  X(0) = 0,  MLP(X) = phi(norm(X) W1 + b1) W2 + b2.
///
/// Static:   u [..., N, in]    -> y [..., N, out], from the state after `hops` hops.
/// Temporal: u [..., T, N, in] -> y [..., T, N, out] (kAll) or [..., N, out] (kLast).
class BlockImpl : public torch::nn::Module {
 public:
  explicit BlockImpl(const BlockOptions& options);

  torch::Tensor forward(const torch::Tensor& u, const graph::Operators& gso,
                        Mode mode = Mode::kStatic,
                        engine::Outputs outputs = engine::Outputs::kLast);

  /// What a deep model puts around a block: forward(norm(h)), dropout on it, and h added. The same
  /// as one by one, in fewer passes over memory. With kLast, h is added as of its last step.
  struct Around {
    NormImpl& norm;
    double dropout = 0.0;  ///< in training
    bool residual = true;
    /// Entries of A in the order of gso.col(), in place of its own; for their gradient. The
    /// recurrence then chooses its plan. Undefined: those of the operator.
    torch::Tensor gso_values = {};
  };
  torch::Tensor forward_around(const torch::Tensor& h, const Around& around,
                               const graph::Operators& gso, Mode mode, engine::Outputs outputs);

  /// The three steps of that on a static graph, for rows or channels of a larger whole: C = norm(h)
  /// B of some nodes, X of some pairs of channels from C, and the rest for some nodes.
  torch::Tensor enter(const torch::Tensor& h, NormImpl& norm, engine::RowPlace place = {});
  torch::Tensor recur_pairs(const torch::Tensor& c, const graph::Operators& gso, std::int64_t begin,
                            std::int64_t end);
  torch::Tensor leave(const torch::Tensor& x, const torch::Tensor& h, const Around& around,
                      engine::RowPlace place = {});

  /// X alone: what the MLP reads.
  torch::Tensor recur(const torch::Tensor& u, const graph::Operators& gso,
                      Mode mode = Mode::kStatic, engine::Outputs outputs = engine::Outputs::kLast);
  /// The operators that X is computed with, where some of it is learned; u as in recur(), needed by
  /// attention alone.
  graph::Operators operator_for(const torch::Tensor& u, const graph::Operators& gso);
  /// The MLP with its norm, at every node by itself.
  torch::Tensor decode(const torch::Tensor& x) { return decode(x, {}, 0.0, {}); }

  const BlockOptions& options() const { return options_; }

  torch::Tensor w_in;            ///< B: [in, C]
  StateMatrix w_state{nullptr};  ///< W
  torch::Tensor w_out;           ///< [C, mix_channels], undefined if there is none
  Entries entries{nullptr};      ///< of A, empty if they are the operator's own
  Factors factors{nullptr};      ///< of an adaptive operator, empty if there is none
  Norm state_norm{nullptr};
  torch::nn::Linear mlp_in{nullptr};   ///< W1, b1
  torch::nn::Linear mlp_out{nullptr};  ///< W2, b2

 private:
  /// X from C = U B.
  torch::Tensor recur_from(const torch::Tensor& c, const graph::Operators& gso, Mode mode,
                           engine::Outputs outputs, const torch::Tensor& gso_values = {});
  torch::Tensor decode(const torch::Tensor& x, const torch::Tensor& residual, double dropout,
                       engine::RowPlace place);

  BlockOptions options_;
};
TORCH_MODULE(Block);

}  // namespace mpssm::nn
