// SPDX-License-Identifier: MIT
#include "mpssm/train/built_model.h"

#include <algorithm>

#include "mpssm/io/error.h"
#include "mpssm/nn/baselines/gcn.h"
#include "mpssm/nn/baselines/linear_gcn.h"
#include "mpssm/nn/model.h"
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

}  // namespace

BuiltModel build_model(const Problem& problem, const Config& config) {
  nn::ModelOptions options = model_options(config.model);
  problem.shape_model(options);
  BuiltModel built;
  built.module = make_network(config.model.kind, options);
  built.num_parameters = nn::num_parameters(*built.module);
  const bool batched = problem.num_train() > 1;
  const graph::Gso gso = problem.largest_gso(config.train.batch);
  const bool temporal = options.mode == nn::Mode::kTemporal;
  const std::int64_t windows =
      temporal && batched ? std::min(config.train.batch, problem.num_train()) : 1;
  // Weights, gradients and Adam's two moments, and the best weights.
  built.training_bytes =
      nn::memory_estimate(options, gso, windows, temporal ? problem.num_steps() : 1,
                          /*training=*/true) +
      5 * 4 * built.num_parameters;
  return built;
}

}  // namespace mpssm::train
