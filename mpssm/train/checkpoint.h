// SPDX-License-Identifier: MIT
// Weights and the state of a training run as safetensors files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include <ATen/core/Generator.h>
#include <torch/nn/module.h>

#include "mpssm/train/adam.h"

namespace mpssm::train {

/// Parameters and buffers by name.
using Weights = std::map<std::string, torch::Tensor>;

Weights copy_weights(const torch::nn::Module& module);
/// Throws base::Error (`origin` first) naming the weight that is missing, unknown, or of another
/// shape or type.
void set_weights(torch::nn::Module& module, const Weights& weights, const std::string& origin);

/// A model file: weights, and what is needed to use them, as text.
void save_model(const std::filesystem::path& path, const Weights& weights,
                const std::map<std::string, std::string>& metadata);
struct ModelFile {
  Weights weights;
  std::map<std::string, std::string> metadata;
};
/// Throws base::Error; a hostile file can do no more.
ModelFile load_model(const std::filesystem::path& path);

/// Where a run stands between two steps.
struct Position {
  std::int64_t epoch = 0;
  std::int64_t batch = 0;  ///< next in this epoch
  std::int64_t step = 0;   ///< optimiser steps made
  double loss_sum = 0.0;   ///< of this epoch, so far
  double lr_factor = 1.0;  ///< plateau schedule
  std::int64_t evals_since_gain = 0;
  std::int64_t evals_since_drop = 0;  ///< of the learning rate, or the last gain
  bool has_best = false;
  double best_value = 0.0;
  std::int64_t best_step = 0;
  bool finished = false;
  double seconds = 0.0;
  std::string history;  ///< metrics.csv so far
};

/// Everything that the next step depends on: weights, best weights, their running mean (if there is
/// one), Adam's moments, the random generator, the position. `config` (TOML) is kept to refuse a
/// resume under settings that differ in more than train.epochs and train.patience.
void save_state(const std::filesystem::path& path, const torch::nn::Module& module, Adam& adam,
                const at::Generator& generator, const Weights& best, const Weights& average,
                const Position& position, const std::string& config);
struct RestoredState {
  Position position;
  Weights best;
  Weights average;
};
RestoredState load_state(const std::filesystem::path& path, torch::nn::Module& module, Adam& adam,
                         at::Generator& generator, const std::string& config);

}  // namespace mpssm::train
