// SPDX-License-Identifier: MIT
#include "mpssm/nn/model.h"

#include <algorithm>

#include <torch/nn/init.h>
#include <torch/types.h>

#include "mpssm/engine/recurrence.h"
#include "mpssm/graph/order.h"
#include "mpssm/nn/recompute.h"
#include "mpssm/ops/dropout.h"
#include "mpssm/ops/linear.h"
#include "mpssm/ops/runtime.h"

namespace mpssm::nn {
namespace {

BlockOptions block_options(const ModelOptions& options) {
  BlockOptions block;
  block.in_channels = block.state_channels = block.out_channels = options.hidden_channels;
  if (options.state_channels > 0) {
    block.state_channels = options.state_channels;
    block.hidden_channels = options.hidden_channels;
    if (options.state_norm != NormKind::kNone) block.mix_channels = options.hidden_channels;
  }
  block.hops = options.hops;
  block.hops_per_step = options.hops_per_step;
  block.group_shares = options.group_shares;
  block.state = options.state;
  block.activation = options.activation;
  block.state_norm = options.state_norm;
  block.dropout = options.dropout;
  block.entries = options.entries;
  block.num_entries = options.num_entries;
  block.factors = options.factors;
  block.plan = options.plan;
  block.plan_costs = options.plan_costs;
  block.operator_calls = options.operator_calls;
  block.precision = options.precision;
  return block;
}

/// Outputs that block number `index` has to give: a forecast reads the last step of the last block.
engine::Outputs outputs_of(const ModelOptions& options, std::int64_t index) {
  const bool every_step = options.mode == Mode::kTemporal &&
                          (options.readout != Readout::kForecast || index + 1 < options.num_blocks);
  return every_step ? engine::Outputs::kAll : engine::Outputs::kLast;
}

struct RecurrenceMemory {
  std::int64_t once = 0;  ///< bytes, whatever the number of blocks
  std::int64_t kept = 0;  ///< by each block for the backward pass, input and output aside
};

RecurrenceMemory recurrence_memory(engine::Plan plan, const graph::Operators& gso,
                                   const engine::PlanQuery& query) {
  // To ask this plan itself would be to decompose the operator.
  if (plan == engine::Plan::kSpectral) return {.once = engine::plan_memory(plan, gso, query)};
  const bool by_torch = plan == engine::Plan::kReference;  // whose loop keeps its states, too
  const engine::RecurrenceCall call{
      .plan = by_torch ? engine::Plan::kStepwise : plan,
      .shape = {.gso = gso,
                .batch = query.batch,
                .num_steps = query.num_steps,
                .channels = query.channels,
                .temporal = query.temporal,
                .diagonal = query.diagonal,
                .outputs = query.outputs,
                .precision = by_torch || (query.gso_values && query.diagonal)
                                 ? engine::Precision::kFloat32
                                 : query.precision,
                .hops_per_step = query.hops_per_step},
      .wanted = {.input = query.training,
                 .w_state = query.training,
                 .gso_values = query.training && (query.gso_values || gso.factor_group() >= 0)}};
  RecurrenceMemory memory;
  memory.kept = query.element_size * engine::saved_size<float>(call);
  memory.once = engine::forward_bytes<float>(call, query.workers);
  if (query.training) {
    memory.once = std::max(memory.once, engine::backward_bytes<float>(call, query.workers));
  }
  // Of a large operator there is a copy in another order of its nodes, where that should pay.
  if (gso.num_nodes() >= graph::kLeastOrderedNodes) {
    const graph::Operators largest = gso.largest();
    for (std::int64_t g = 0; g < largest.num_groups(); ++g) {
      if (largest.is_low_rank(g)) continue;
      memory.once += graph::ordered_bytes(largest.of_group(g), query.element_size);
    }
  }
  return memory;
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
  TORCH_CHECK_VALUE(options.input_dropout >= 0.0 && options.input_dropout < 1.0,
                    "Model: expected input_dropout in [0, 1), got ", options.input_dropout);
  TORCH_CHECK_VALUE(options.entries != EntriesKind::kAttention || options.mode == Mode::kStatic,
                    "Model: entries by attention need static mode");
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
                                 .shape = options.readout_shape,
                                 .activation = options.readout_activation,
                                 .dropout = options.readout_dropout});
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

torch::Tensor ModelImpl::encode_all(const torch::Tensor& x) {
  const torch::Tensor h = encode(x, {});
  return node_embedding_.defined() ? h + node_embedding_ : h;
}

torch::Tensor ModelImpl::embed(const torch::Tensor& x, const graph::Operators& gso,
                               const torch::Tensor& entries) {
  torch::Tensor h = encode_all(x);
  if (is_training()) h = ops::dropout(h, options_.input_dropout);
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const engine::Outputs outputs = outputs_of(options_, static_cast<std::int64_t>(i));
    // By value: it may run again in the backward pass, when this call is long over.
    const Layer layer = [block = blocks_[i].ptr(), norm = norms_[i].ptr(), gso, outputs, entries,
                         options = options_](const torch::Tensor& input) {
      return block->forward_around(input,
                                   {.norm = *norm,
                                    .dropout = options.dropout,
                                    .residual = options.residual,
                                    .gso_values = entries},
                                   gso, options.mode, outputs);
    };
    if (entries.defined()) {
      h = recompute(layer, h, {entries});
      continue;
    }
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

torch::Tensor ModelImpl::forward(const torch::Tensor& x, const graph::Operators& gso) {
  return run(x, gso, {});
}

torch::Tensor ModelImpl::forward_with_entries(const torch::Tensor& x, const graph::Operators& gso,
                                              const torch::Tensor& entries) {
  TORCH_CHECK_VALUE(!is_training(), "forward_with_entries: expected a model in evaluation mode");
  TORCH_CHECK_VALUE(options_.entries == EntriesKind::kFixed,
                    "forward_with_entries: expected a model that learns no entries itself");
  return run(x, gso, entries);
}

ModelImpl::Trace ModelImpl::trace(const torch::Tensor& x, const graph::Operators& gso) {
  Trace trace;
  torch::Tensor h = encode_all(x);
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const engine::Outputs outputs = outputs_of(options_, static_cast<std::int64_t>(i));
    trace.h.push_back(h);
    trace.u.push_back(norms_[i]->forward(h));
    trace.state.push_back(blocks_[i]->recur(trace.u.back(), gso, options_.mode, outputs));
    const torch::Tensor y = blocks_[i]->decode(trace.state.back());
    const bool drops_time = h.dim() > y.dim();
    if (!options_.residual) {
      h = y;
    } else {
      h = (drops_time ? h.select(-3, h.size(-3) - 1) : h) + y;
    }
  }
  trace.h.push_back(h);
  return trace;
}

graph::Operators ModelImpl::block_operator(std::int64_t block, const torch::Tensor& x,
                                           const graph::Operators& gso) {
  if (options_.entries == EntriesKind::kFixed && options_.factors.rank == 0) return gso;
  const torch::NoGradGuard no_grad;
  const torch::Tensor u = options_.entries == EntriesKind::kAttention
                              ? trace(x, gso).u[static_cast<std::size_t>(block)]
                              : torch::Tensor();
  return blocks_[static_cast<std::size_t>(block)]->operator_for(u, gso);
}

torch::Tensor ModelImpl::run(const torch::Tensor& x, const graph::Operators& gso,
                             const torch::Tensor& entries) {
  const bool temporal = options_.mode == Mode::kTemporal;
  TORCH_CHECK_VALUE(x.defined() && x.dim() >= (temporal ? 3 : 2) && x.size(-2) == gso.num_nodes() &&
                        has_input_width(x, options_.in_channels, options_.vocabulary),
                    "Model: expected x of shape ",
                    temporal ? "[..., T, N=" : "[..., N=", gso.num_nodes(),
                    ", in_channels=", options_.in_channels, "], got ",
                    x.defined() ? c10::str(x.sizes()) : "an undefined tensor");
  TORCH_CHECK_VALUE(
      options_.num_embedded_nodes == 0 || options_.num_embedded_nodes == gso.num_nodes(),
      "Model: has embeddings of ", options_.num_embedded_nodes, " nodes, got a graph of ",
      gso.num_nodes());
  TORCH_CHECK_VALUE(options_.factors.rank == 0 || options_.factors.num_nodes == gso.num_nodes(),
                    "Model: has an adaptive operator of ", options_.factors.num_nodes,
                    " nodes, got a graph of ", gso.num_nodes());
  TORCH_CHECK_VALUE(options_.skip_steps == 0 || x.size(-3) >= options_.skip_steps,
                    "Model: expected at least skip_steps=", options_.skip_steps, " steps, got ",
                    x.size(-3));
  const torch::Tensor y = read_out(embed(x, gso, entries), gso, {});
  return skip_.is_empty() ? y : y + skip(x);
}

torch::Tensor ModelImpl::encode(const torch::Tensor& x, engine::RowPlace place) {
  return nn::encode(encoder_, options_.vocabulary, x, place);
}

torch::Tensor ModelImpl::enter_block(std::int64_t block, const torch::Tensor& h,
                                     engine::RowPlace place) {
  return blocks_[block]->enter(h, *norms_[block], place);
}

torch::Tensor ModelImpl::leave_block(std::int64_t block, const torch::Tensor& x,
                                     const torch::Tensor& h, engine::RowPlace place) {
  return blocks_[block]->leave(
      x, h, {.norm = *norms_[block], .dropout = options_.dropout, .residual = options_.residual},
      place);
}

torch::Tensor ModelImpl::read_out(const torch::Tensor& h, const graph::Operators& gso,
                                  engine::RowPlace place) {
  return readout_.forward(final_norm_->forward(h, place), gso, place);
}

bool can_recompute(const ModelOptions& options) {
  return options.norm != NormKind::kBatch && options.state_norm != NormKind::kBatch;
}

std::int64_t num_parameters(const torch::nn::Module& module) {
  std::int64_t count = 0;
  for (const torch::Tensor& parameter : module.parameters()) count += parameter.numel();
  return count;
}

std::int64_t memory_estimate(const ModelOptions& options, const graph::Operators& gso,
                             std::int64_t batch, std::int64_t num_steps, bool training) {
  const bool temporal = options.mode == Mode::kTemporal;
  const std::int64_t state_channels =
      options.state_channels > 0 ? options.state_channels : options.hidden_channels;
  engine::PlanQuery query{.batch = batch,
                          .num_steps = temporal ? num_steps : options.hops + 1,
                          .channels = state_channels,
                          .temporal = temporal,
                          .diagonal = options.state.kind != StateKind::kDense,
                          .outputs = temporal ? engine::Outputs::kAll : engine::Outputs::kLast,
                          .training = training,
                          .gso_values = options.entries != EntriesKind::kFixed,
                          .sequence = gso.is_sequence(),
                          .operator_calls = options.operator_calls,
                          .workers = ops::num_threads(),
                          .precision = options.precision,
                          .hops_per_step = temporal ? options.hops_per_step : 1,
                          .costs = options.plan_costs.get()};
  const engine::Plan plan = options.plan == engine::Plan::kAuto
                                ? engine::choose_plan(gso.largest(), query)
                                : options.plan;
  const std::int64_t features = batch * (temporal ? num_steps : 1) * gso.num_nodes() *
                                (options.hidden_channels + state_channels) / 2 * query.element_size;
  // In units of `features`, from the peaks of whole processes rather than from counting tensors;
  // tests/cli/memory_test.py holds the result against measured peaks.
  constexpr double kInEvaluation = 4.0;
  constexpr double kAtOnce = 4.0;         // of a backward pass, whatever the depth
  constexpr double kKept = 3.8;           // by each block; forecasts need no more at once than that
  constexpr double kKeptRounded = 1.6;    // the same in bfloat16
  constexpr double kSeriesRounded = 4.0;  // there a series keeps its states as floats
  constexpr double kOfBatchNorm = 12.0;   // made of single operators, which keep more
  constexpr double kRunsAgain = 4.0;      // beyond the rest, of blocks that run again
  constexpr double kOfInput = 1.2;        // kept by each of these
  const double batch_norms = (options.norm == NormKind::kBatch ? 1.0 : 0.0) +
                             (options.state_norm == NormKind::kBatch ? 1.0 : 0.0);
  // Blocks that run again keep their input, and one of them at a time all the rest.
  const std::int64_t full_blocks = options.recompute ? 1 : options.num_blocks;
  double in_units = kInEvaluation;
  if (training) {
    const bool rounded = options.precision == engine::Precision::kBf16;
    const double kept = !rounded ? kKept : temporal ? kSeriesRounded : kKeptRounded;
    in_units = (kept + kOfBatchNorm * batch_norms) * static_cast<double>(full_blocks) +
               kOfInput * static_cast<double>(options.num_blocks - full_blocks) +
               (options.recompute ? kRunsAgain : 0.0) + (temporal ? 0.0 : kAtOnce);
  }
  const RecurrenceMemory of_plan = recurrence_memory(plan, gso, query);
  // Learned entries: values and transposed ones, float and double, kept with each block's call, the
  // tensors they come from, and once the places of the transposed ones.
  constexpr std::int64_t kOfEntry = 56;
  const std::int64_t of_entries = query.gso_values ? (training ? full_blocks + 1 : 1) * kOfEntry *
                                                         (gso.num_nonzeros() + gso.num_nodes())
                                                   : 0;
  return of_entries + static_cast<std::int64_t>(in_units * static_cast<double>(features)) +
         of_plan.once + (training ? full_blocks * of_plan.kept : 0);
}

}  // namespace mpssm::nn
