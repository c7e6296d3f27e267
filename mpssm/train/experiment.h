// SPDX-License-Identifier: MIT
// From a config to a trained model in a folder, and from that folder back to the model.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "mpssm/data/dataset.h"
#include "mpssm/report/run_record.h"
#include "mpssm/train/config.h"
#include "mpssm/train/problem.h"
#include "mpssm/train/trainer.h"

namespace mpssm::train {

/// Data, problem and network of a config.
struct Experiment {
  Config config;
  std::unique_ptr<data::Dataset> dataset;  // the problem refers to it
  std::unique_ptr<Problem> problem;
  BuiltModel model;
  std::string metric;  ///< that selects the best model
};

/// Weights that a network of these settings has at least, told without making it.
std::int64_t least_parameters(const Config& config);

/// Loads the data and builds the network, its weights drawn from config.seed.
Experiment set_up(const Config& config, const std::filesystem::path& data_dir = {});

/// The trained model of a run folder (or model.safetensors file) with the data it was trained on,
/// or with `new_data` (a name or path) read the way those were.
Experiment reopen(const std::filesystem::path& run, const std::filesystem::path& data_dir = {},
                  const std::optional<std::string>& new_data = {});

struct RunOptions {
  std::filesystem::path folder;
  bool resume = false;
  TrainHooks hooks = {};
};

/// Trains into a folder that is made if need be: config.toml, metrics.csv, model.safetensors,
/// state.safetensors, predictions.csv and, when all is done, record.json. nullopt: interrupted, can
/// be resumed. A finished run that is resumed gives its record again.
std::optional<report::RunRecord> run(Experiment& experiment, const RunOptions& options);

/// Metrics of a part with the model as it is, without gradients.
Metrics evaluate(const Experiment& experiment, data::Part part);

/// Peak memory of this process so far, in MiB.
double peak_mib();

}  // namespace mpssm::train
