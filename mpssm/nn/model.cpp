// SPDX-License-Identifier: MIT
#include "mpssm/nn/model.h"

#include <torch/nn/init.h>
#include <torch/types.h>

#include "mpssm/nn/recompute.h"
#include "mpssm/ops/linear.h"
#include "mpssm/ops/runtime.h"

namespace mpssm::nn {
namespace {

BlockOptions block_options(const ModelOptions& options) {
  BlockOptions block;
  block.in_channels = block.state_channels = block.out_channels = options.hidden_channels;
  block.hops = options.hops;
  block.state = options.state;
  block.activation = options.activation;
  block.state_norm = options.state_norm;
  block.dropout = options.dropout;
  block.plan = options.plan;
  block.operator_calls = options.operator_calls;
  return block;
}

/// Outputs that block number `index` has to give: a forecast reads the last step of the last block.
engine::Outputs outputs_of(const ModelOptions& options, std::int64_t index) {
  const bool every_step = options.mode == Mode::kTemporal &&
                          (options.readout != Readout::kForecast || index + 1 < options.num_blocks);
  return every_step ? engine::Outputs::kAll : engine::Outputs::kLast;
}

}  // namespace

ModelImpl::ModelImpl(const ModelOptions& options) : options_(options) {
  TORCH_CHECK_VALUE(
      options.in_channels >= 1 && options.hidden_channels >= 1 && options.out_channels >= 1,
      "Model: expected in, hidden and out channels >= 1, got ", options.in_channels, ", ",
      options.hidden_channels, ", ", options.out_channels);
  TORCH_CHECK_VALUE(options.num_blocks >= 1, "Model: expected num_blocks >= 1, got ",
                    options.num_blocks);
  TORCH_CHECK_VALUE(options.readout != Readout::kGraph || options.mode == Mode::kStatic,
                    "Model: readout graph needs static mode");
  TORCH_CHECK_VALUE(options.readout != Readout::kForecast || options.mode == Mode::kTemporal,
                    "Model: readout forecast needs temporal mode");
  set_recompute(options.recompute);
  const std::int64_t hidden = options.hidden_channels;
  encoder_ = register_module("encoder", torch::nn::Linear(options.in_channels, hidden));
  for (std::int64_t i = 0; i < options.num_blocks; ++i) {
    const std::string index = std::to_string(i);
    norms_.push_back(register_module("norm_" + index, Norm(options.norm, hidden)));
    blocks_.push_back(register_module("block_" + index, Block(block_options(options))));
  }
  final_norm_ = register_module("final_norm", Norm(options.norm, hidden));
  readout_ = ReadoutHead(*this, {.in_channels = hidden,
                                 .out_channels = options.out_channels,
                                 .pools = options.readout == Readout::kGraph,
                                 .pooling = options.pooling,
                                 .layers = options.readout_layers,
                                 .activation = options.readout_activation});
  if (options.num_embedded_nodes > 0) {
    node_embedding_ = register_parameter("node_embedding",
                                         torch::randn({options.num_embedded_nodes, hidden}) * 0.1);
  }
  if (options.skip_steps > 0) {
    TORCH_CHECK_VALUE(options.readout == Readout::kForecast,
                      "Model: skip_steps needs readout forecast");
    skip_ = register_module(
        "skip", torch::nn::Linear(options.skip_steps * options.in_channels, options.out_channels));
    torch::nn::init::zeros_(skip_->weight);
    torch::nn::init::zeros_(skip_->bias);
  }
}

torch::Tensor ModelImpl::embed(const torch::Tensor& x, const graph::Gso& gso) {
  torch::Tensor h = ops::linear(x, encoder_->weight, encoder_->bias);
  if (node_embedding_.defined()) h = h + node_embedding_;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const engine::Outputs outputs = outputs_of(options_, static_cast<std::int64_t>(i));
    // By value: it may run again in the backward pass, when this call is long over.
    const Layer layer = [block = blocks_[i].ptr(), norm = norms_[i].ptr(), gso, outputs,
                         options = options_](const torch::Tensor& input) {
      return block->forward_around(
          input, {.norm = *norm, .dropout = options.dropout, .residual = options.residual}, gso,
          options.mode, outputs);
    };
    if (!options_.recompute || !is_training()) {
      h = layer(h);
      continue;
    }
    std::vector<torch::Tensor> parameters = norms_[i]->parameters();
    const std::vector<torch::Tensor> of_block = blocks_[i]->parameters();
    parameters.insert(parameters.end(), of_block.begin(), of_block.end());
    h = recompute(layer, h, parameters);
  }
  return h;
}

void ModelImpl::set_recompute(bool recompute) {
  TORCH_CHECK_VALUE(!recompute || can_recompute(options_),
                    "Model: expected no batch norm where blocks are run again, got one");
  options_.recompute = recompute;
}

torch::Tensor ModelImpl::skip(const torch::Tensor& x) {
  const torch::Tensor last =
      x.slice(/*dim=*/-3, x.size(-3) - options_.skip_steps).transpose(-3, -2);  // [..., N, T, in]
  return ops::linear(last.flatten(-2).contiguous(), skip_->weight, skip_->bias);
}

void ModelImpl::start_skip(const torch::Tensor& weight, const torch::Tensor& bias) {
  TORCH_CHECK_VALUE(!skip_.is_empty(), "start_skip: expected a model with skip_steps > 0");
  const torch::NoGradGuard no_grad;
  skip_->weight.copy_(weight);
  skip_->bias.copy_(bias);
  readout_.start_at_zero();
}

torch::Tensor ModelImpl::forward(const torch::Tensor& x, const graph::Gso& gso) {
  const bool temporal = options_.mode == Mode::kTemporal;
  TORCH_CHECK_VALUE(x.defined() && x.dim() >= (temporal ? 3 : 2) && x.size(-2) == gso.num_nodes() &&
                        x.size(-1) == options_.in_channels,
                    "Model: expected x of shape ",
                    temporal ? "[..., T, N=" : "[..., N=", gso.num_nodes(),
                    ", in_channels=", options_.in_channels, "], got ",
                    x.defined() ? c10::str(x.sizes()) : "an undefined tensor");
  TORCH_CHECK_VALUE(
      options_.num_embedded_nodes == 0 || options_.num_embedded_nodes == gso.num_nodes(),
      "Model: has embeddings of ", options_.num_embedded_nodes, " nodes, got a graph of ",
      gso.num_nodes());
  TORCH_CHECK_VALUE(options_.skip_steps == 0 || x.size(-3) >= options_.skip_steps,
                    "Model: expected at least skip_steps=", options_.skip_steps, " steps, got ",
                    x.size(-3));
  const torch::Tensor y = readout_.forward(final_norm_->forward(embed(x, gso)), gso);
  return skip_.is_empty() ? y : y + skip(x);
}

bool can_recompute(const ModelOptions& options) {
  return options.norm != NormKind::kBatch && options.state_norm != NormKind::kBatch;
}

std::int64_t num_parameters(const torch::nn::Module& module) {
  std::int64_t count = 0;
  for (const torch::Tensor& parameter : module.parameters()) count += parameter.numel();
  return count;
}

std::int64_t memory_estimate(const ModelOptions& options, const graph::Gso& gso, std::int64_t batch,
                             std::int64_t num_steps, bool training) {
  const bool temporal = options.mode == Mode::kTemporal;
  engine::PlanQuery query{.batch = batch,
                          .num_steps = temporal ? num_steps : options.hops + 1,
                          .channels = options.hidden_channels,
                          .temporal = temporal,
                          .diagonal = options.state.kind != StateKind::kDense,
                          .outputs = temporal ? engine::Outputs::kAll : engine::Outputs::kLast,
                          .training = training,
                          .operator_calls = options.operator_calls,
                          .workers = ops::num_threads()};
  const engine::Plan plan =
      options.plan == engine::Plan::kAuto ? engine::choose_plan(gso, query) : options.plan;
  const std::int64_t features = batch * (temporal ? num_steps : 1) * gso.num_nodes() *
                                options.hidden_channels * query.element_size;
  // In units of `features`, from the peaks of whole processes rather than from counting tensors;
  // tests/cli/memory_test.py holds the result against measured peaks.
  constexpr double kAtOnce = 9.0;        // of a backward pass, whatever the depth
  constexpr double kRunsAgain = 2.0;     // beyond that, of a block that runs again
  constexpr double kOfInput = 1.2;       // that such a block keeps
  constexpr double kOfWindows = 3.0;     // less for forecasts: their last block gives one step only
  constexpr double kInEvaluation = 5.5;  // without gradients
  // Kept by each block; a batch norm is made of single operators, which keep more.
  const double batch_norms = (options.norm == NormKind::kBatch ? 1.0 : 0.0) +
                             (options.state_norm == NormKind::kBatch ? 1.0 : 0.0);
  const double per_block = 4.8 + 12.0 * batch_norms;
  if (!training) return static_cast<std::int64_t>(kInEvaluation * static_cast<double>(features));
  // Blocks that run again keep their input, and one of them at a time all the rest.
  const std::int64_t full_blocks = options.recompute ? 1 : options.num_blocks;
  const double in_units = per_block * static_cast<double>(full_blocks) +
                          kOfInput * static_cast<double>(options.num_blocks - full_blocks) +
                          (options.recompute ? kRunsAgain : 0.0) +
                          (temporal ? kOfWindows : kAtOnce);
  // What a plan keeps beyond the few states that the units above hold already.
  constexpr std::int64_t kHeld = 5;
  const std::int64_t state = std::max<std::int64_t>(
      batch * gso.num_nodes() * options.hidden_channels * query.element_size, 1);
  const std::int64_t beyond = std::max<std::int64_t>(
      engine::plan_memory(plan, gso, query) - kHeld * (temporal ? features : state), 0);
  return static_cast<std::int64_t>(in_units * static_cast<double>(features)) + full_blocks * beyond;
}

}  // namespace mpssm::nn
