// SPDX-License-Identifier: MIT
#include "mpssm/train/built_model.h"

#include <algorithm>

#include "mpssm/io/error.h"
#include "mpssm/nn/baselines/gcn.h"
#include "mpssm/nn/baselines/linear_gcn.h"
#include "mpssm/nn/model.h"
#include "mpssm/ops/generator.h"
#include "mpssm/train/problem.h"

namespace mpssm::train {
namespace {

nn::ModelOptions model_options(const ModelConfig& config) {
  nn::ModelOptions options;
  options.hidden_channels = config.channels;
  options.num_blocks = config.blocks;
  options.hops = config.hops;
  options.state.kind = nn::state_kind_from_name(config.state);
  options.state.min_modulus = config.min_modulus;
  options.state.max_modulus = config.max_modulus;
  options.activation = nn::activation_from_name(config.activation);
  options.norm = nn::norm_kind_from_name(config.norm);
  options.state_norm = nn::norm_kind_from_name(config.state_norm);
  options.residual = config.residual;
  options.dropout = config.dropout;
  options.pooling = ops::pooling_from_name(config.pooling);
  options.readout_layers = config.readout_layers;
  options.readout_activation = nn::activation_from_name(config.readout_activation);
  options.plan = ops::plan_from_name(config.plan);
  options.operator_calls = 100;  // a training comes back to its graph at every step
  // Data decide the sizes; these two only say that such a part is wanted.
  options.num_embedded_nodes = config.node_embedding ? 1 : 0;
  options.skip_steps = config.skip ? 1 : 0;
  return options;
}

std::shared_ptr<nn::GraphModule> make_network(const std::string& kind,
                                              const nn::ModelOptions& options) {
  if (kind == "mpssm") return nn::Model(options).ptr();
  if (options.mode == nn::Mode::kTemporal) {
    throw io::InputError("model.kind: " + kind + " has no temporal mode; a series needs mpssm");
  }
  const nn::ReadoutOptions readout{.pools = options.readout == nn::Readout::kGraph,
                                   .pooling = options.pooling,
                                   .layers = options.readout_layers,
                                   .activation = options.readout_activation};
  if (kind == "gcn") {
    return nn::Gcn(nn::GcnOptions{.in_channels = options.in_channels,
                                  .hidden_channels = options.hidden_channels,
                                  .out_channels = options.out_channels,
                                  .num_layers = options.num_blocks,
                                  .activation = options.activation,
                                  .norm = options.norm,
                                  .residual = options.residual,
                                  .dropout = options.dropout,
                                  .readout = readout})
        .ptr();
  }
  return nn::LinearGcn(nn::LinearGcnOptions{.in_channels = options.in_channels,
                                            .hidden_channels = options.hidden_channels,
                                            .out_channels = options.out_channels,
                                            .num_blocks = options.num_blocks,
                                            .hops = options.hops,
                                            .shared = kind != "linear_gcn",
                                            .mlp = kind == "linear_blocks",
                                            .activation = options.activation,
                                            .readout = readout})
      .ptr();
}

/// Measured like nn::memory_estimate, for networks of layers without a recurrence of their own.
std::int64_t gcn_memory(const nn::ModelOptions& options, const graph::Gso& gso) {
  const auto layers = static_cast<double>(options.num_blocks);
  const double features =
      static_cast<double>(gso.num_nodes() * options.hidden_channels) * sizeof(float);
  return static_cast<std::int64_t>((10.0 + 8.5 * layers) * features);
}

}  // namespace

BuiltModel build_model(const Problem& problem, const Config& config) {
  nn::ModelOptions options = model_options(config.model);
  problem.shape_model(options);
  BuiltModel built;
  built.generator =
      std::make_shared<at::Generator>(ops::make_generator(static_cast<std::uint64_t>(config.seed)));
  {
    const ops::DefaultGeneratorScope own_numbers(*built.generator);
    built.module = make_network(config.model.kind, options);
  }
  built.num_parameters = nn::num_parameters(*built.module);
  const graph::Gso gso = problem.largest_gso(config.train.batch);
  const bool temporal = options.mode == nn::Mode::kTemporal;
  const std::int64_t windows =
      temporal ? std::max<std::int64_t>(std::min(config.train.batch, problem.num_train()), 1) : 1;
  const std::int64_t in_training =
      config.model.kind == "mpssm"
          ? nn::memory_estimate(options, gso, windows, problem.num_steps(), /*training=*/true)
          : gcn_memory(options, gso);
  const std::int64_t in_evaluation = nn::memory_estimate(options, gso, problem.evaluation_batch(),
                                                         problem.num_steps(), /*training=*/false);
  // Weights, gradients and Adam's two moments, and the best weights.
  built.training_bytes =
      std::max(in_training, in_evaluation) + 5 * 4 * built.num_parameters + problem.data_bytes();
  return built;
}

}  // namespace mpssm::train
