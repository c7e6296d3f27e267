// SPDX-License-Identifier: MIT
// Everything that decides a training run, in one value: read from TOML, changed key by key, written
// back whole.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace mpssm::train {

// What each means: visit_settings() below.

struct DataConfig {
  std::string name = "";
  std::int64_t split = 0;
  std::string task = "auto";
  std::string target = "";
  bool directed = false;
  bool standardise = true;
  std::int64_t lags = 0;
  std::int64_t horizon = 0;
  double train_ratio = 0.0;
  std::int64_t split_seed = 0;
  std::int64_t make_seed = 0;
};

struct ModelConfig {
  std::string kind = "mpssm";
  std::int64_t channels = 64;
  std::int64_t blocks = 4;
  std::int64_t hops = 4;
  std::string state = "stable";
  double min_modulus = 0.7;
  double max_modulus = 0.999;
  std::string activation = "gelu";
  std::string norm = "layer";
  std::string state_norm = "layer";
  bool residual = true;
  double dropout = 0.2;
  std::string gso = "sym_normalized";
  std::string pooling = "mean";
  std::int64_t readout_layers = 1;
  std::string readout_activation = "gelu";
  bool node_embedding = false;
  bool skip = false;
  std::string plan = "auto";
};

struct TrainConfig {
  std::int64_t epochs = 300;
  std::int64_t batch = 64;
  std::string optimiser = "adamw";
  double lr = 1e-3;
  double weight_decay = 0.0;
  std::string schedule = "constant";
  double warmup_epochs = 0.0;
  double min_lr = 1e-6;
  double plateau_factor = 0.5;
  std::int64_t plateau_patience = 10;
  double clip = 0.0;
  std::int64_t patience = 0;
  std::int64_t eval_every = 1;
  std::string metric = "auto";
  std::string loss = "auto";
  bool class_weights = false;
  bool on_validation = false;
  bool track_test = false;
  double checkpoint_seconds = 30.0;
};

struct Config {
  std::int64_t seed = 0;
  DataConfig data;
  ModelConfig model;
  TrainConfig train;
};

/// Calls visit(key, member, help) for every setting, in order; `config` may be const.
template <typename AnyConfig, typename Visit>
void visit_settings(AnyConfig& config, Visit&& visit) {
  visit("seed", config.seed, "start of all random numbers");
  auto& data = config.data;
  visit("data.name", data.name, "registered or built-in name, or a path");
  visit("data.split", data.split, "which of the dataset's splits");
  visit("data.task", data.task, "own files: what to learn; auto looks at the labels");
  visit("data.target", data.target, "own tables: label column");
  visit("data.directed", data.directed, "own tables: edges count one way only");
  visit("data.standardise", data.standardise, "own tables and series: mean 0, deviation 1");
  visit("data.lags", data.lags, "series: steps seen (0: the dataset's)");
  visit("data.horizon", data.horizon, "series: steps predicted (0: the dataset's)");
  visit("data.train_ratio", data.train_ratio,
        "series: share of the training part (0: the dataset's)");
  visit("data.split_seed", data.split_seed, "of the random split of data that has none");
  visit("data.make_seed", data.make_seed, "of built-in data");
  auto& model = config.model;
  visit("model.kind", model.kind, "mpssm, gcn, linear_gcn, linear_gcn_shared or linear_blocks");
  visit("model.channels", model.channels, "width");
  visit("model.blocks", model.blocks, "blocks (gcn: layers)");
  visit("model.hops", model.hops, "hops per block on a static graph");
  visit("model.state", model.state, "W: dense, diagonal or stable");
  visit("model.min_modulus", model.min_modulus, "diagonal W: least modulus at the start");
  visit("model.max_modulus", model.max_modulus, "diagonal W: largest modulus at the start");
  visit("model.activation", model.activation, "gelu, relu, tanh, leaky_relu, identity");
  visit("model.norm", model.norm, "layer, batch, none");
  visit("model.state_norm", model.state_norm, "norm between recurrence and MLP");
  visit("model.residual", model.residual, "add each block's input to its output");
  visit("model.dropout", model.dropout, "share of numbers dropped in training");
  visit("model.gso", model.gso,
        "graph shift operator: sym_normalized, random_walk, adjacency, ...");
  visit("model.pooling", model.pooling, "mean, sum, max, sum_max_mean");
  visit("model.readout_layers", model.readout_layers, "linear layers of the readout");
  visit("model.readout_activation", model.readout_activation, "between them");
  visit("model.node_embedding", model.node_embedding, "forecasts: a learned vector per node");
  visit("model.skip", model.skip, "forecasts: a linear map from the window to the output");
  visit("model.plan", model.plan, "auto, stepwise, doubling, diagonal, spectral");
  auto& train = config.train;
  visit("train.epochs", train.epochs, "passes over the training data (one graph: steps)");
  visit("train.batch", train.batch, "graphs or windows per step");
  visit("train.optimiser", train.optimiser, "adamw or adam");
  visit("train.lr", train.lr, "learning rate");
  visit("train.weight_decay", train.weight_decay, "not applied to biases and norms");
  visit("train.schedule", train.schedule, "constant, plateau or cosine");
  visit("train.warmup_epochs", train.warmup_epochs, "cosine: linear rise first");
  visit("train.min_lr", train.min_lr, "plateau: lowest learning rate");
  visit("train.plateau_factor", train.plateau_factor, "plateau: lr is multiplied by this");
  visit("train.plateau_patience", train.plateau_patience, "plateau: evaluations without gain");
  visit("train.clip", train.clip, "largest norm of the gradient (0: none)");
  visit("train.patience", train.patience, "evaluations without gain before the end (0: never)");
  visit("train.eval_every", train.eval_every, "epochs between evaluations");
  visit("train.metric", train.metric, "selects the best model, on validation");
  visit("train.loss", train.loss, "regression and forecasts: mse or mae");
  visit("train.class_weights", train.class_weights, "rare classes count more");
  visit("train.on_validation", train.on_validation,
        "series: also train on the validation part; the last weights count");
  visit("train.track_test", train.track_test, "also write test metrics at every evaluation");
  visit("train.checkpoint_seconds", train.checkpoint_seconds, "time between checkpoints");
}

/// Applies TOML text; `origin` names it in messages ("my.toml"). Throws io::InputError: syntax with
/// line and column, unknown key with the nearest known one, wrong type.
void apply_toml(Config& config, std::string_view text, const std::string& origin);

/// Applies one "key=value" from a command line.
void apply_setting(Config& config, std::string_view assignment);

/// Checks ranges and names; throws io::InputError naming key, value and what is allowed.
void check(const Config& config);

/// All settings as TOML that apply_toml() reads back to the same.
std::string to_toml(const Config& config);

/// Settings shipped for a dataset (configs/<name>.toml), or nullptr.
const char* preset(std::string_view name);

}  // namespace mpssm::train
