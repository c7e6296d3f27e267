// SPDX-License-Identifier: MIT
#include "mpssm/train/built_model.h"

#include <algorithm>
#include <fmt/core.h>
#include <memory>

#include "mpssm/base/error.h"
#include "mpssm/engine/plan_costs.h"
#include "mpssm/nn/model.h"
#include "mpssm/ops/generator.h"
#include "mpssm/task/problem.h"
#include "mpssm/train/compared_networks.h"

namespace mpssm::train {
namespace {

nn::ModelOptions model_options(const ModelConfig& config, const task::ProblemShape& shape) {
  nn::ModelOptions options;
  options.in_channels = shape.in_channels;
  options.vocabulary = shape.vocabulary;
  options.out_channels = shape.out_channels;
  options.mode = shape.mode;
  options.readout = shape.readout;
  options.hidden_channels = config.channels;
  options.num_blocks = config.blocks;
  options.hops = config.hops;
  options.hops_per_step = config.hops_per_step;
  options.group_shares = config.gso.shares();
  options.state.kind = config.state;
  options.state_channels = config.state_channels;
  options.state.min_modulus = config.min_modulus;
  options.state.max_modulus = config.max_modulus;
  options.activation = config.activation;
  options.norm = config.norm;
  options.state_norm = config.state_norm;
  options.residual = config.residual;
  options.dropout = config.dropout;
  options.input_dropout = config.input_dropout;
  options.readout_dropout = config.readout_dropout;
  options.pooling = config.pooling;
  options.readout_layers = config.readout_layers;
  options.readout_shape = config.readout_shape;
  options.readout_activation = config.readout_activation;
  options.plan = config.plan;
  if (config.plan_costs != engine::kBuiltinCosts) {
    options.plan_costs =
        std::make_shared<const engine::PlanCosts>(engine::plan_costs_from_text(config.plan_costs));
  }
  options.operator_calls = 100;  // a training comes back to its graph at every step
  const bool many_graphs = shape.num_nodes == 0;
  // Every batch is a new operator: decomposing each anew would cost more than it saves.
  if (many_graphs && options.plan == engine::Plan::kAuto &&
      options.state.kind != nn::StateKind::kDense) {
    options.plan = engine::Plan::kDiagonal;
  }
  options.entries = config.entries;
  if (config.gso.is_adaptive()) {
    if (many_graphs) {
      throw base::Error("model.gso",
                        "adaptive learns a vector of each node and needs nodes that are always the "
                        "same, got many graphs");
    }
    options.factors = {.num_nodes = shape.num_nodes,
                       .rank = std::min(config.gso.adaptive_rank, shape.num_nodes)};
  }
  if (config.node_embedding) options.num_embedded_nodes = shape.num_nodes;
  if (config.skip && shape.readout == nn::Readout::kForecast) options.skip_steps = shape.num_steps;
  return options;
}

/// Entries of A to learn one by one: 0 unless asked for.
std::int64_t free_entries(const task::Problem& problem, const ModelConfig& config) {
  const task::ProblemShape shape = problem.shape();
  if (config.entries == nn::EntriesKind::kAttention && shape.mode == nn::Mode::kTemporal) {
    throw base::Error("model.entries", "attention looks at one graph; a series needs another kind");
  }
  if (config.entries != nn::EntriesKind::kFixed && problem.largest_gso(1).is_sequence()) {
    throw base::Error("model.entries",
                      "learned ones are for one graph, got a sequence of graphs "
                      "(data.graph_over_time)");
  }
  if (config.entries != nn::EntriesKind::kFree) return 0;
  if (shape.num_nodes == 0) {
    throw base::Error("model.entries",
                      "free entries belong to one graph; many graphs need attention or gin");
  }
  return problem.largest_gso(1).num_nonzeros();
}

}  // namespace

task::ProblemOptions problem_options(const Config& config) {
  return {.gso = config.model.gso,
          .encodings = engine::encodings_from_text(config.data.encodings),
          .split = config.data.split,
          .batch = config.train.batch,
          .channels = config.model.channels,
          .loss = config.train.loss,
          .class_weights = config.train.class_weights,
          .on_validation = config.train.on_validation,
          .graph_over_time = config.data.graph_over_time,
          .series = {.fill = config.data.fill,
                     .mark_missing = config.data.mark_missing,
                     .deviation = config.data.deviation,
                     .harmonics = config.data.harmonics}};
}

BuiltModel build_model(const task::Problem& problem, const Config& config) {
  const task::ProblemShape shape = problem.shape();
  const bool is_mpssm = config.model.kind == ModelKind::kMpssm;
  nn::ModelOptions options = model_options(config.model, shape);
  if (options.hops_per_step > 1 && shape.mode != nn::Mode::kTemporal) {
    throw base::Error("model.hops_per_step",
                      fmt::format("expected 1 where data are no series (model.hops is for them), "
                                  "got {}",
                                  options.hops_per_step));
  }
  options.num_entries = free_entries(problem, config.model);
  options.precision = config.train.precision;
  BuiltModel built;
  built.generator =
      std::make_shared<at::Generator>(ops::make_generator(static_cast<std::uint64_t>(config.seed)));
  {
    const ops::DefaultGeneratorScope own_numbers(*built.generator);
    built.module = is_mpssm ? nn::Model(options).ptr() : make_compared_network(config.model, shape);
  }
  built.num_parameters = nn::num_parameters(*built.module);
  // A step holds one piece of its batch at a time; an evaluation knows no pieces.
  const std::int64_t pieces = problem.num_train() > 1 ? config.train.pieces : 1;
  const std::int64_t batch = std::max<std::int64_t>(
      (std::min(config.train.batch, problem.num_train()) + pieces - 1) / pieces, 1);
  const graph::Operators gso = problem.largest_gso(batch);
  const bool temporal = options.mode == nn::Mode::kTemporal;
  const std::int64_t windows = temporal ? batch : 1;
  const auto in_training = [&](bool recompute) {
    if (!is_mpssm) return compared_network_memory(config.model, shape, gso.only(), windows);
    nn::ModelOptions counted = options;
    counted.recompute = recompute && nn::can_recompute(options);
    return nn::memory_estimate(counted, gso, windows, shape.num_steps, /*training=*/true);
  };
  const std::int64_t in_evaluation =
      nn::memory_estimate(options, problem.largest_gso(config.train.batch),
                          problem.evaluation_batch(), shape.num_steps, /*training=*/false);
  // Scratch that is kept between calls, and what an allocator keeps of small pieces.
  constexpr std::int64_t kKept = std::int64_t{5} << 20;
  // Weights, gradients and Adam's two moments, and the best weights; a mean of weights, and what
  // steps aside for it; a gradient of each piece, and their sum.
  const std::int64_t copies = 5 + (config.train.ema > 0.0 ? 2 : 0) + (pieces > 1 ? pieces + 2 : 0);
  const std::int64_t always = copies * 4 * built.num_parameters + problem.data_bytes() + kKept;
  built.training_bytes = std::max(in_training(false), in_evaluation) + always;
  built.least_training_bytes = std::max(in_training(true), in_evaluation) + always;
  return built;
}

void save_memory(BuiltModel& built) {
  const auto model = std::dynamic_pointer_cast<nn::ModelImpl>(built.module);
  if (model == nullptr || !nn::can_recompute(model->options())) return;
  model->set_recompute(true);
  built.training_bytes = built.least_training_bytes;
}

void start_from_data(const task::Problem& problem, const BuiltModel& built) {
  const auto model = std::dynamic_pointer_cast<nn::ModelImpl>(built.module);
  if (model == nullptr || model->options().skip_steps == 0) return;
  if (const auto start = problem.linear_start()) model->start_skip(start->weight, start->bias);
}

}  // namespace mpssm::train
