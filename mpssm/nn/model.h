// SPDX-License-Identifier: MIT
// The deep model: encoder, a stack of blocks with pre-norm, residual and dropout, and a readout.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include "mpssm/engine/pool.h"
#include "mpssm/graph/operators.h"
#include "mpssm/nn/block.h"
#include "mpssm/nn/encode.h"
#include "mpssm/nn/graph_module.h"
#include "mpssm/nn/norm.h"
#include "mpssm/nn/readout.h"

namespace mpssm::nn {

enum class Readout {
  kNode,      ///< one output per node (and time step, in temporal mode)
  kGraph,     ///< one output per graph of the batch; static mode
  kForecast,  ///< one output per node from the last time step; temporal mode
};

struct ModelOptions {
  std::int64_t in_channels = 1;
  Vocabulary vocabulary = {};  ///< of the features that are categories, see encode.h
  std::int64_t hidden_channels = 64;
  std::int64_t out_channels = 1;  ///< classes, targets, or steps ahead for a forecast
  std::int64_t num_blocks = 4;
  std::int64_t hops = 4;                        ///< k of each block, static mode
  std::int64_t hops_per_step = 1;               ///< of each block, temporal mode
  std::vector<std::int64_t> group_shares = {};  ///< see BlockOptions
  Mode mode = Mode::kStatic;
  StateMatrixOptions state = {};
  /// Channels of the states; 0: hidden_channels. Others go through a linear map, before the norm
  /// of the state if there is one.
  std::int64_t state_channels = 0;
  Activation activation = Activation::kGelu;
  NormKind norm = NormKind::kLayer;        ///< on the input of each block, and before the readout
  NormKind state_norm = NormKind::kLayer;  ///< inside each block, see BlockOptions
  bool residual = true;
  double dropout = 0.0;          ///< on each block's output and inside its MLP
  double input_dropout = 0.0;    ///< on H at the start
  double readout_dropout = 0.0;  ///< before each linear layer of the readout
  Readout readout = Readout::kNode;
  engine::Pooling pooling = engine::Pooling::kMean;
  /// Linear layers of the readout, with `readout_activation` between them.
  std::int64_t readout_layers = 1;
  ReadoutShape readout_shape = ReadoutShape::kHalving;
  Activation readout_activation = Activation::kGelu;
  /// A learned vector per node added to H at the start; 0: none. Binds the model to one graph.
  std::int64_t num_embedded_nodes = 0;
  /// kForecast: a linear map from the last so many steps of x straight to the output, started at
  /// zero; 0: none.
  std::int64_t skip_steps = 0;
  /// Where the entries of each block's A come from. kAttention: static mode.
  EntriesKind entries = EntriesKind::kFixed;
  std::int64_t num_entries = 0;  ///< kFree: nonzeros of the operator; binds the model to one graph
  /// Of a group whose operator is adaptive, see BlockOptions; binds the model to one set of nodes.
  FactorsOptions factors = {.num_nodes = 0, .rank = 0};
  engine::Plan plan = engine::Plan::kAuto;
  std::shared_ptr<const engine::PlanCosts> plan_costs = {};  ///< of kAuto; null: the built-in ones
  /// Calls on one graph that can share its eigenbasis (plan kAuto); 1: every call has its own
  /// graph.
  std::int64_t operator_calls = 1;
  /// Inside the blocks. What comes in and what goes out keeps its digits: encoder and readout are
  /// float32.
  engine::Precision precision = engine::Precision::kFloat32;
  /// Blocks keep their input alone for the backward pass and run again there: the same numbers in
  /// less memory and more time. Not with batch norm, whose statistics would count twice.
  bool recompute = false;
};

/// True if ModelOptions::recompute may be set.
bool can_recompute(const ModelOptions& options);

/// H = x E + e;  H <- H + Dropout(Block(Norm(H))) for each block;  y = Readout(Norm(H)).
///
/// Static:   x [..., N, in]    -> [..., N, out], or [G, out] for kGraph (x then [N, in]).
/// Temporal: x [..., T, N, in] -> [..., T, N, out], or [..., N, out] for kForecast.
/// Stacking s blocks of k hops lets a node see s k hops.
class ModelImpl : public GraphModule {
 public:
  explicit ModelImpl(const ModelOptions& options);

  torch::Tensor forward(const torch::Tensor& x, const graph::Operators& gso) override;
  bool takes_codes() const override {
    return options_.skip_steps == 0 && can_take_codes(options_.in_channels, options_.vocabulary);
  }

  /// The same with other entries of A, in the order of gso.col(), and with their gradient. Blocks
  /// run again in the backward pass, so that the states of one of them are kept at a time. In
  /// evaluation mode.
  torch::Tensor forward_with_entries(const torch::Tensor& x, const graph::Operators& gso,
                                     const torch::Tensor& entries);

  /// What goes into each block and what its recurrence makes of it, without dropout; differentiable
  /// in x.
  struct Trace {
    std::vector<torch::Tensor> h;      ///< [num_blocks + 1] before each block, and after the last
    std::vector<torch::Tensor> u;      ///< [num_blocks] norm(h), which the block reads
    std::vector<torch::Tensor> state;  ///< [num_blocks] X, which its MLP reads
  };
  Trace trace(const torch::Tensor& x, const graph::Operators& gso);

  /// The operators that block number `block` runs with on x: gso, or it with learned entries.
  graph::Operators block_operator(std::int64_t block, const torch::Tensor& x,
                                  const graph::Operators& gso);

  /// For a model with skip_steps: its linear map starts at weight [out, skip_steps * in] and bias
  /// [out], all else at zero output.
  void start_skip(const torch::Tensor& weight, const torch::Tensor& bias);

  const ModelOptions& options() const { return options_; }
  const std::vector<Block>& blocks() const { return blocks_; }
  const std::vector<Norm>& norms() const { return norms_; }  ///< before each block
  const Norm& final_norm() const { return final_norm_; }
  const torch::nn::Linear& encoder() const { return encoder_; }
  bool has_skip() const { return !skip_.is_empty(); }

  /// See ModelOptions::recompute.
  void set_recompute(bool recompute);

  /// The steps of forward() on one static graph, for rows or channels of a larger whole (see
  /// BlockImpl::enter): H of some nodes, block by block, and what is read out of it.
  torch::Tensor encode(const torch::Tensor& x, engine::RowPlace place);
  torch::Tensor enter_block(std::int64_t block, const torch::Tensor& h, engine::RowPlace place);
  torch::Tensor leave_block(std::int64_t block, const torch::Tensor& x, const torch::Tensor& h,
                            engine::RowPlace place);
  torch::Tensor read_out(const torch::Tensor& h, const graph::Operators& gso,
                         engine::RowPlace place);

 private:
  /// H after all blocks: [..., N, hidden] or [..., T, N, hidden].
  torch::Tensor embed(const torch::Tensor& x, const graph::Operators& gso,
                      const torch::Tensor& entries);
  torch::Tensor encode_all(const torch::Tensor& x);  // with the embedding of nodes
  torch::Tensor run(const torch::Tensor& x, const graph::Operators& gso,
                    const torch::Tensor& entries);
  torch::Tensor skip(const torch::Tensor& x);

  ModelOptions options_;
  torch::nn::Linear encoder_{nullptr};
  std::vector<Norm> norms_;
  std::vector<Block> blocks_;
  Norm final_norm_{nullptr};
  ReadoutHead readout_;
  torch::Tensor node_embedding_;     // [N, hidden], undefined if not wanted
  torch::nn::Linear skip_{nullptr};  // [skip_steps * in] -> [out]
};
TORCH_MODULE(Model);

/// Learnable numbers of a module.
std::int64_t num_parameters(const torch::nn::Module& module);

/// Bytes that one forward call (with `training`: forward and backward) needs at its peak for
/// `batch` inputs of `num_steps` steps each (static mode: 1), parameters and optimiser state not
/// included.
std::int64_t memory_estimate(const ModelOptions& options, const graph::Operators& gso,
                             std::int64_t batch, std::int64_t num_steps, bool training);

}  // namespace mpssm::nn
