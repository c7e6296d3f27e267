// SPDX-License-Identifier: MIT
#include "mpssm/train/compared_networks.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <initializer_list>
#include <stdexcept>
#include <string_view>

#include "mpssm/base/error.h"
#include "mpssm/graph/pattern_operators.h"
#include "mpssm/nn/baselines/adgn.h"
#include "mpssm/nn/baselines/drew.h"
#include "mpssm/nn/baselines/gat.h"
#include "mpssm/nn/baselines/gcn.h"
#include "mpssm/nn/baselines/ggrnn.h"
#include "mpssm/nn/baselines/gps.h"
#include "mpssm/nn/baselines/graphssm.h"
#include "mpssm/nn/baselines/linear_gcn.h"
#include "mpssm/nn/baselines/sage.h"
#include "mpssm/task/problem.h"

namespace mpssm::train {
namespace {

bool for_series(ModelKind kind) {
  return kind == ModelKind::kGgrnn || kind == ModelKind::kGraphSsm;
}

void check_data(ModelKind kind, const task::ProblemShape& shape) {
  const bool has_time = shape.mode == nn::Mode::kTemporal;
  if (has_time == for_series(kind)) return;
  throw base::Error(
      "model.kind",
      has_time ? fmt::format("{} has no temporal mode; a series needs mpssm, ggrnn or graphssm",
                             to_string(kind))
               : fmt::format("{} is for series, and these data have no time", to_string(kind)));
}

nn::ReadoutOptions readout_of(const ModelConfig& config, const task::ProblemShape& shape) {
  return {.pools = shape.readout == nn::Readout::kGraph,
          .pooling = config.pooling,
          .layers = config.readout_layers,
          .shape = config.readout_shape,
          .activation = config.readout_activation,
          .dropout = config.readout_dropout};
}

nn::LinearGcnOptions linear_options(const ModelConfig& config, const task::ProblemShape& shape) {
  return {.in_channels = shape.in_channels,
          .vocabulary = shape.vocabulary,
          .hidden_channels = config.channels,
          .out_channels = shape.out_channels,
          .num_blocks = config.blocks,
          .hops = config.hops,
          .shared = config.kind != ModelKind::kLinearGcn,
          .mlp = config.kind == ModelKind::kLinearBlocks,
          .activation = config.activation,
          .input_dropout = config.input_dropout,
          .readout = readout_of(config, shape)};
}

bool one_of(ModelKind kind, std::initializer_list<ModelKind> kinds) {
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

/// Whether a network of this kind looks at a setting that not all of them look at.
bool looks_at(ModelKind kind, std::string_view key) {
  using enum ModelKind;
  const bool is_linear = one_of(kind, {kLinearGcn, kLinearGcnShared, kLinearBlocks});
  for (const char* of_mpssm : {"state", "state_channels", "min_modulus", "max_modulus",
                               "state_norm", "node_embedding", "skip", "plan", "plan_costs"}) {
    if (key == of_mpssm) return kind == kMpssm;
  }
  if (key == "hops") return is_linear || one_of(kind, {kMpssm, kAdgn, kGgrnn});
  if (key == "residual") return !is_linear && !one_of(kind, {kAdgn, kGps});
  if (key == "norm" || key == "dropout") return !is_linear;
  if (key == "activation") return !one_of(kind, {kLinearGcn, kLinearGcnShared});
  if (key == "heads") return one_of(kind, {kGat, kGps});
  if (key == "step_size" || key == "damping") return kind == kAdgn;
  if (key == "delay") return kind == kDrew;
  if (key == "state_size") return kind == kGraphSsm;
  return true;
}

}  // namespace

std::vector<std::string> settings_without_meaning(const Config& config) {
  constexpr std::string_view kSection = "model.";
  std::vector<std::string> keys;
  for (const Setting& setting : settings_of(config)) {
    if (!config.given.contains(setting.key) || !setting.key.starts_with(kSection)) continue;
    const std::string_view name = std::string_view(setting.key).substr(kSection.size());
    if (!looks_at(config.model.kind, name)) keys.push_back(setting.key);
  }
  return keys;
}

std::shared_ptr<nn::GraphModule> make_compared_network(const ModelConfig& config,
                                                       const task::ProblemShape& shape) {
  check_data(config.kind, shape);
  const nn::LayeredOptions layers{.in_channels = shape.in_channels,
                                  .vocabulary = shape.vocabulary,
                                  .hidden_channels = config.channels,
                                  .out_channels = shape.out_channels,
                                  .num_layers = config.blocks,
                                  .activation = config.activation,
                                  .norm = config.norm,
                                  .residual = config.residual,
                                  .dropout = config.dropout,
                                  .input_dropout = config.input_dropout,
                                  .readout = readout_of(config, shape),
                                  .forecasts = shape.mode == nn::Mode::kTemporal};
  switch (config.kind) {
    case ModelKind::kGcn:
      return nn::Gcn(layers).ptr();
    case ModelKind::kSage:
      return nn::Sage(layers).ptr();
    case ModelKind::kGat:
      return nn::Gat(layers, config.heads).ptr();
    case ModelKind::kGps:
      return nn::Gps(layers, config.heads).ptr();
    case ModelKind::kGgrnn:
      return nn::Ggrnn(layers, config.hops).ptr();
    case ModelKind::kGraphSsm:
      return nn::GraphSsm(layers, config.state_size).ptr();
    case ModelKind::kAdgn:
      return nn::Adgn(nn::AdgnOptions{.layers = layers,
                                      .steps = config.hops,
                                      .step_size = config.step_size,
                                      .damping = config.damping})
          .ptr();
    case ModelKind::kDrew:
      return nn::Drew(layers, config.delay).ptr();
    case ModelKind::kLinearGcn:
    case ModelKind::kLinearGcnShared:
    case ModelKind::kLinearBlocks:
      return nn::LinearGcn(linear_options(config, shape)).ptr();
    case ModelKind::kMpssm:
      break;
  }
  throw std::logic_error("make_compared_network: mpssm is not one of them");
}

std::int64_t compared_network_memory(const ModelConfig& config, const task::ProblemShape& shape,
                                     const graph::Gso& gso, std::int64_t batch) {
  const std::int64_t steps = shape.mode == nn::Mode::kTemporal ? batch * shape.num_steps : 1;
  const double features =
      static_cast<double>(steps * gso.num_nodes() * config.channels) * sizeof(float);
  const auto layers = static_cast<double>(config.blocks);
  // In units of `features`, as nn::memory_estimate() has them: from measured peaks.
  double of_layer = 3.6;
  double at_once = 8.0;
  double operators = 0.0;
  const auto hops = static_cast<double>(config.hops);
  switch (config.kind) {
    case ModelKind::kSage:
      of_layer = 6.0;
      operators = 16.0 * static_cast<double>(gso.num_nonzeros());
      break;
    case ModelKind::kAdgn:
      of_layer = 4.2 * hops;
      break;
    case ModelKind::kDrew:
      of_layer = 4.0 + (layers + 1.0) / 2.0;  // features of all distances side by side
      at_once += 2.0 * layers;
      for (const graph::Gso& far : graph::exact_distance_operators(gso, config.blocks)) {
        operators += 16.0 * static_cast<double>(far.num_nonzeros());
      }
      break;
    case ModelKind::kGat:
    case ModelKind::kGps:
      // Random features are ln(width) times as many numbers.
      of_layer = config.kind == ModelKind::kGat
                     ? 5.2
                     : 24.0 + 5.0 * std::log(static_cast<double>(config.channels / config.heads));
      // Weights of the entries are kept by each layer; a gradient needs them twice more.
      operators = (layers + 3.0) * 4.0 * static_cast<double>(config.heads * gso.num_nonzeros());
      break;
    case ModelKind::kGgrnn:
      of_layer = 6.0 + 2.0 * (hops + 1.0);
      at_once += hops;
      break;
    case ModelKind::kGraphSsm:
      of_layer = 9.0;
      break;
    default:
      break;
  }
  if (config.norm == nn::NormKind::kBatch) of_layer += 12.4;
  return static_cast<std::int64_t>((at_once + of_layer * layers) * features + operators);
}

}  // namespace mpssm::train
