// SPDX-License-Identifier: MIT
// The training loop: steps, evaluation, selection on validation, checkpoints, exact resume.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "mpssm/task/metrics.h"
#include "mpssm/train/built_model.h"
#include "mpssm/train/config.h"

namespace mpssm::ranks {
class Communicator;
}

namespace mpssm::nn {
class SharedModule;
}

namespace mpssm::train {

/// Reported after every step.
struct Progress {
  std::int64_t step = 0;
  std::int64_t num_steps = 0;
  double loss = 0.0;  ///< of this step
  double lr = 0.0;
  const task::Metrics* val = nullptr;  ///< set after an evaluation
  double best = 0.0;                   ///< NaN before the first evaluation
  double seconds = 0.0;                ///< of the whole run, earlier pieces included
  double seconds_left = 0.0;           ///< at the present speed
};

struct TrainHooks {
  std::function<void(const Progress&)> on_step = {};
  std::function<bool()> should_stop = {};  ///< asked after every step
};

struct TrainJob {
  const task::Problem& problem;
  const Config& config;
  std::string metric;  ///< selects the best model, on validation
  std::shared_ptr<nn::GraphModule> model;
  std::shared_ptr<at::Generator> generator;     ///< of dropout
  std::filesystem::path folder;                 ///< of the run; must exist
  std::map<std::string, std::string> metadata;  ///< for model.safetensors
  bool resume = false;                          ///< from folder/state.safetensors, if it is there
  /// Those that train together, all with the same job; null: this process alone. They share the
  /// model where it says how, else the pieces of each batch. Rank 0 writes.
  ranks::Communicator* ranks = nullptr;
  std::shared_ptr<nn::SharedModule> shared = {};  ///< `model`, by its channels or its nodes
};

struct TrainOutcome {
  bool finished = false;  ///< false: stopped by should_stop, resume goes on
  std::int64_t steps = 0;
  std::int64_t best_step = 0;
  double seconds = 0.0;
};

/// Trains, keeping state.safetensors, model.safetensors (best so far) and metrics.csv in the
/// folder; at the end the model has the best weights. Given the same config and data, the outcome
/// is the same to the bit for any number of threads, of ranks and of interruptions. Throws
/// base::Error when the loss is no longer finite, with the files of the last checkpoint in place.
TrainOutcome train(const TrainJob& job, const TrainHooks& hooks = {});

/// A permutation of 0 .. count - 1 that depends on seed and epoch alone.
std::vector<std::int64_t> epoch_order(std::int64_t count, std::int64_t seed, std::int64_t epoch);

/// The factor on the learning rate at `epoch` (fractions count), plateau aside.
double schedule_factor(const TrainConfig& config, double epoch);

}  // namespace mpssm::train
