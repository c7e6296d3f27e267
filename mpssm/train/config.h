// SPDX-License-Identifier: MIT
// Everything that decides a training run, in one value: read from TOML, changed key by key, written
// back whole.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "mpssm/base/enum_table.h"
#include "mpssm/data/dataset.h"
#include "mpssm/data/load.h"
#include "mpssm/data/period.h"
#include "mpssm/engine/activation.h"
#include "mpssm/engine/plan.h"
#include "mpssm/engine/pool.h"
#include "mpssm/engine/precision.h"
#include "mpssm/graph/operator_groups.h"
#include "mpssm/nn/kinds.h"
#include "mpssm/task/loss.h"

namespace mpssm::train {

enum class ModelKind {
  kMpssm,
  kGcn,
  kSage,
  kGat,
  kAdgn,
  kDrew,
  kGps,
  kGgrnn,  ///< these two are for series alone
  kGraphSsm,
  kLinearGcn,        ///< layers without nonlinearity
  kLinearGcnShared,  ///< one weight for all layers
  kLinearBlocks,     ///< blocks of them with an MLP each
};
inline constexpr base::EnumRow<ModelKind> kModelKinds[] = {
    {ModelKind::kMpssm, "mpssm"},
    {ModelKind::kGcn, "gcn"},
    {ModelKind::kSage, "sage"},
    {ModelKind::kGat, "gat"},
    {ModelKind::kAdgn, "adgn"},
    {ModelKind::kDrew, "drew"},
    {ModelKind::kGps, "gps"},
    {ModelKind::kGgrnn, "ggrnn"},
    {ModelKind::kGraphSsm, "graphssm"},
    {ModelKind::kLinearGcn, "linear_gcn"},
    {ModelKind::kLinearGcnShared, "linear_gcn_shared"},
    {ModelKind::kLinearBlocks, "linear_blocks"},
};
constexpr base::EnumTable<ModelKind> table_of(ModelKind) { return kModelKinds; }
constexpr std::string_view to_string(ModelKind kind) { return table_of(kind).name(kind); }

enum class Optimiser { kAdamW, kAdam };
inline constexpr base::EnumRow<Optimiser> kOptimisers[] = {{Optimiser::kAdamW, "adamw"},
                                                           {Optimiser::kAdam, "adam"}};
constexpr base::EnumTable<Optimiser> table_of(Optimiser) { return kOptimisers; }

enum class Schedule { kConstant, kPlateau, kCosine };
inline constexpr base::EnumRow<Schedule> kSchedules[] = {{Schedule::kConstant, "constant"},
                                                         {Schedule::kPlateau, "plateau"},
                                                         {Schedule::kCosine, "cosine"}};
constexpr base::EnumTable<Schedule> table_of(Schedule) { return kSchedules; }

// What each means: visit_settings() below.

struct DataConfig {
  std::string name = "";
  std::int64_t split = 0;
  std::optional<data::Task> task;  ///< none: "auto"
  std::string target = "";
  std::optional<data::EdgeUse> directed;  ///< none: "auto"
  std::string id = "";
  std::string ignore = "";
  std::string categorical = "";
  std::string numeric = "";
  std::string text = "";
  bool standardise = true;
  std::int64_t lags = 0;
  std::int64_t horizon = 0;
  bool graph_over_time = false;
  double train_ratio = 0.0;
  double period = 0.0;
  std::optional<data::Fill> fill;  ///< none: "auto"
  bool mark_missing = false;
  bool deviation = false;
  std::int64_t harmonics = 0;
  std::int64_t split_seed = 0;
  std::int64_t make_seed = 0;
  std::string rewired = "";
  std::string encodings = "";
};

struct ModelConfig {
  ModelKind kind = ModelKind::kMpssm;
  std::int64_t channels = 64;
  std::int64_t blocks = 4;
  std::int64_t hops = 4;
  std::int64_t hops_per_step = 1;
  nn::StateKind state = nn::StateKind::kStable;
  std::int64_t state_channels = 0;
  double min_modulus = 0.7;
  double max_modulus = 0.999;
  engine::Activation activation = engine::Activation::kGelu;
  nn::NormKind norm = nn::NormKind::kLayer;
  nn::NormKind state_norm = nn::NormKind::kLayer;
  bool residual = true;
  double dropout = 0.2;
  double input_dropout = 0.0;
  double readout_dropout = 0.0;
  graph::GsoGroups gso = graph::GsoKind::kSymNormalized;
  nn::EntriesKind entries = nn::EntriesKind::kFixed;
  engine::Pooling pooling = engine::Pooling::kMean;
  std::int64_t readout_layers = 1;
  nn::ReadoutShape readout_shape = nn::ReadoutShape::kHalving;
  engine::Activation readout_activation = engine::Activation::kGelu;
  bool node_embedding = false;
  bool skip = false;
  std::int64_t heads = 4;
  double step_size = 0.1;
  double damping = 0.1;
  std::int64_t delay = 1;
  std::int64_t state_size = 16;
  engine::Plan plan = engine::Plan::kAuto;
  std::string plan_costs = "builtin";  // engine::kBuiltinCosts
};

struct TrainConfig {
  std::int64_t epochs = 300;
  std::int64_t batch = 64;
  std::int64_t pieces = 1;
  Optimiser optimiser = Optimiser::kAdamW;
  double lr = 1e-3;
  double weight_decay = 0.0;
  Schedule schedule = Schedule::kConstant;
  double warmup_epochs = 0.0;
  double min_lr = 1e-6;
  double plateau_factor = 0.5;
  std::int64_t plateau_patience = 10;
  double clip = 0.0;
  double ema = 0.0;
  std::int64_t patience = 0;
  std::int64_t eval_every = 1;
  std::string metric = "auto";
  task::Loss loss = task::Loss::kAuto;
  bool class_weights = false;
  bool on_validation = false;
  bool track_test = false;
  double checkpoint_seconds = 30.0;
  engine::Precision precision = engine::Precision::kFloat32;
};

struct Config {
  std::int64_t seed = 0;
  DataConfig data;
  ModelConfig model;
  TrainConfig train;

  /// No setting: settings that nobody has given are chosen from the data, see train/defaults.h.
  bool by_rules = false;
  std::set<std::string, std::less<>> given = {};  ///< keys that apply_toml, apply_setting have set
};

/// Calls visit(key, member, help) for every setting, in order; `config` may be const. The help of
/// an enum leaves out its names, which its table knows.
template <typename AnyConfig, typename Visit>
void visit_settings(AnyConfig& config, Visit&& visit) {
  visit("seed", config.seed, "start of all random numbers");
  auto& data = config.data;
  visit("data.name", data.name, "registered or built-in name, or a path");
  visit("data.split", data.split, "which of the dataset's splits");
  visit("data.task", data.task, "own files: what to learn; auto looks at the labels");
  visit("data.target", data.target, "own tables: label column");
  visit("data.id", data.id, "own tables: column of ids");
  visit("data.ignore", data.ignore, "own tables: columns to leave out, a,b,c");
  visit("data.categorical", data.categorical, "own tables: columns to read as categories");
  visit("data.numeric", data.numeric, "own tables: columns to read as numbers");
  visit("data.text", data.text, "own tables: columns of free text, read as groups of characters");
  visit("data.directed", data.directed,
        "own tables and series: the way of messages; auto: both, of own tables unless a pair has "
        "two weights");
  visit("data.standardise", data.standardise, "own tables and series: mean 0, deviation 1");
  visit("data.lags", data.lags, "series: steps seen (0: the dataset's)");
  visit("data.horizon", data.horizon, "series: steps predicted (0: the dataset's)");
  visit("data.train_ratio", data.train_ratio,
        "series: share of the training part (0: the dataset's)");
  visit("data.period", data.period,
        "series: steps of a week or a year, say (0: the dataset's, or by its clock)");
  visit("data.fill", data.fill,
        "series: in place of missing readings; auto: stored if a value marks them, else last");
  visit("data.mark_missing", data.mark_missing, "series: an input that is 1 where one is missing");
  visit("data.deviation", data.deviation,
        "series: learn deviations from the mean at this place of the period");
  visit("data.harmonics", data.harmonics, "series: sines and cosines of the period, as inputs");
  visit("data.graph_over_time", data.graph_over_time,
        "series: the graph of each step, by the times of the edges");
  visit("data.split_seed", data.split_seed, "of the random split of data that has none");
  visit("data.make_seed", data.make_seed, "of built-in data");
  visit("data.rewired", data.rewired, "edges to put in and take out (mpssm advise --save)");
  visit(
      "data.encodings", data.encodings,
      "what the graph says of nodes, beside their features: some of rwse:K, lap:K, degree, edges");
  auto& model = config.model;
  visit("model.kind", model.kind, "");
  visit("model.channels", model.channels, "width");
  visit("model.blocks", model.blocks, "blocks (compared networks: layers)");
  visit("model.hops", model.hops,
        "hops per block on a static graph (adgn: steps per layer; ggrnn: highest power of A)");
  visit("model.hops_per_step", model.hops_per_step, "series: hops between two steps of time");
  visit("model.state", model.state, "W");
  visit("model.state_channels", model.state_channels,
        "of the states of a block (0: as model.channels; mpssm convert sets it)");
  visit("model.min_modulus", model.min_modulus, "diagonal W: least modulus at the start");
  visit("model.max_modulus", model.max_modulus, "diagonal W: largest modulus at the start");
  visit("model.activation", model.activation, "");
  visit("model.norm", model.norm, "");
  visit("model.state_norm", model.state_norm, "norm between recurrence and MLP");
  visit("model.residual", model.residual, "add each block's input to its output");
  visit("model.dropout", model.dropout, "share of numbers dropped in training");
  visit("model.input_dropout", model.input_dropout, "the same on the encoder's output");
  visit("model.readout_dropout", model.readout_dropout, "before each layer of the readout");
  visit("model.gso", model.gso,
        "graph shift operator, or a:2,b,c: one per group of channels, with shares, b(column): one "
        "for "
        "each value of a column of edges;");
  visit("model.adaptive_rank", model.gso.adaptive_rank,
        "rank of the operator adaptive, at most the number of nodes");
  visit("model.entries", model.entries, "of the operator, in each block");
  visit("model.pooling", model.pooling, "");
  visit("model.readout_layers", model.readout_layers, "linear layers of the readout");
  visit("model.readout_shape", model.readout_shape, "width of all but the last of them");
  visit("model.readout_activation", model.readout_activation, "between them");
  visit("model.node_embedding", model.node_embedding, "forecasts: a learned vector per node");
  visit("model.skip", model.skip, "forecasts: a linear map from the window to the output");
  visit("model.heads", model.heads, "gat, gps: of the attention");
  visit("model.step_size", model.step_size, "adgn: of a step of its equation");
  visit("model.damping", model.damping, "adgn: how fast the state fades");
  visit("model.delay", model.delay, "drew: hops that come without delay");
  visit("model.state_size", model.state_size, "graphssm: complex numbers per channel");
  visit("model.plan", model.plan, "");
  visit("model.plan_costs", model.plan_costs,
        "what auto goes by: builtin, or measured (once per machine; the run keeps the prices)");
  auto& train = config.train;
  visit("train.epochs", train.epochs, "passes over the training data (one graph: steps)");
  visit("train.batch", train.batch, "graphs or windows per step");
  visit("train.pieces", train.pieces,
        "pieces of a batch, gradients added in order: less memory, and one or more for each rank");
  visit("train.optimiser", train.optimiser, "");
  visit("train.lr", train.lr, "learning rate");
  visit("train.weight_decay", train.weight_decay, "not applied to biases and norms");
  visit("train.schedule", train.schedule, "");
  visit("train.warmup_epochs", train.warmup_epochs, "cosine: linear rise first");
  visit("train.min_lr", train.min_lr, "plateau: lowest learning rate");
  visit("train.plateau_factor", train.plateau_factor, "plateau: lr is multiplied by this");
  visit("train.plateau_patience", train.plateau_patience, "plateau: evaluations without gain");
  visit("train.clip", train.clip, "largest norm of the gradient (0: none)");
  visit("train.ema", train.ema,
        "decay of a running mean of the weights, which is what is evaluated and kept (0: none)");
  visit("train.patience", train.patience, "evaluations without gain before the end (0: never)");
  visit("train.eval_every", train.eval_every, "epochs between evaluations");
  visit("train.metric", train.metric, "selects the best model, on validation");
  visit("train.loss", train.loss, "regression and forecasts");
  visit("train.class_weights", train.class_weights, "rare classes count more");
  visit("train.on_validation", train.on_validation,
        "series: also train on the validation part; the last weights count");
  visit("train.track_test", train.track_test, "also write test metrics at every evaluation");
  visit("train.checkpoint_seconds", train.checkpoint_seconds, "time between checkpoints");
  visit("train.precision", train.precision, "of products and states inside the blocks");
}

/// Applies TOML text; `origin` names it in messages ("my.toml"). Throws base::Error: syntax with
/// line and column, unknown key with the nearest known one, wrong type, unknown name.
void apply_toml(Config& config, std::string_view text, const std::string& origin);

/// Throws base::Error with line and column unless the text is fit for a TOML parser: no control
/// characters, no nesting beyond what settings have.
void check_toml_text(std::string_view text, const std::string& origin);

/// Applies one "key=value" from a command line.
void apply_setting(Config& config, std::string_view assignment);

/// Checks ranges; throws base::Error naming key, value and what is allowed.
void check(const Config& config);

/// All settings as TOML that apply_toml() reads back to the same.
std::string to_toml(const Config& config);

/// A setting as people read it: "model.plan", "auto", "auto, stepwise, ...".
struct Setting {
  std::string key;
  std::string value;
  std::string help;
};
std::vector<Setting> settings_of(const Config& config);

/// `base` with the settings that `wanted` was given.
Config with_given(Config base, const Config& wanted);

/// The first setting in which two configs differ, "KEY is a there, b here"; empty if none does.
std::string first_difference(const Config& there, const Config& here);

/// Settings shipped for a dataset (configs/<name>.toml), or nullptr: they are chosen by rules.
const char* preset(std::string_view name);

}  // namespace mpssm::train
