// SPDX-License-Identifier: MIT
#include "mpssm/train/problem.h"

#include <torch/types.h>

#include "mpssm/io/error.h"
#include "mpssm/nn/baselines/gcn.h"
#include "mpssm/nn/baselines/linear_gcn.h"
#include "mpssm/train/problems.h"

namespace mpssm::train {

torch::Tensor ordered_sum(const torch::Tensor& x) {
  // torch adds up to 32768 numbers on one thread; sums of rows are one thread's work each.
  constexpr std::int64_t kRow = 4096;
  torch::Tensor flat = x.reshape({-1});
  const std::int64_t rest = flat.numel() % kRow;
  if (flat.numel() <= kRow) return flat.sum();
  const torch::Tensor rows = flat.slice(0, 0, flat.numel() - rest).view({-1, kRow}).sum(1);
  const torch::Tensor sum = ordered_sum(rows);
  return rest == 0 ? sum : sum + flat.slice(0, flat.numel() - rest).sum();
}

void check_sample(std::int64_t index, std::int64_t count) {
  if (index >= 0 && index < count) return;
  throw std::out_of_range("sample: expected 0 to " + std::to_string(count - 1) + ", got " +
                          std::to_string(index));
}

torch::Tensor tensor_of(const data::Matrix& matrix) {
  torch::Tensor tensor = torch::empty({matrix.rows, matrix.columns});
  std::copy(matrix.values.begin(), matrix.values.end(), tensor.data_ptr<float>());
  return tensor;
}

std::span<const float> numbers_of(const torch::Tensor& tensor) {
  return {tensor.data_ptr<float>(), static_cast<std::size_t>(tensor.numel())};
}

torch::Tensor measured(const data::SeriesData& data) {
  torch::Tensor series = torch::empty({data.num_steps, data.num_nodes});
  for (std::int64_t i = 0; i < series.numel(); ++i) {
    series.data_ptr<float>()[i] = data.values[i * data.num_features];
  }
  return series;
}

void append_numbers(std::string& text, const float* values, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    char number[40];
    std::snprintf(number, sizeof number, ",%.7g", values[i]);
    text += number;
  }
}

void add_error_metrics(const Errors& errors, Metrics& metrics) {
  metrics["mae"] = errors.mae;
  metrics["mse"] = errors.mse;
  metrics["rmse"] = errors.rmse;
}

std::unique_ptr<Problem> make_problem(const data::Dataset& dataset, const Config& config,
                                      const Preprocessing* learned) {
  if (config.train.on_validation && !std::holds_alternative<data::SeriesData>(dataset.content)) {
    throw io::InputError("train.on_validation: for series only, " + dataset.name + " is none");
  }
  if (std::holds_alternative<data::NodeData>(dataset.content)) {
    return make_node_problem(dataset, config, learned);
  }
  if (std::holds_alternative<data::GraphsData>(dataset.content)) {
    return make_graphs_problem(dataset, config, learned);
  }
  return make_series_problem(dataset, config, learned);
}

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
