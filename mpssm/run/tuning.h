// SPDX-License-Identifier: MIT
// A search over settings: which are tried, for how long, and what came out. Validation alone
// decides.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "mpssm/run/train_all.h"
#include "mpssm/train/config.h"

namespace mpssm::run {

struct TuneOptions {
  std::filesystem::path folder = {};  ///< trials go below it; finished ones are not run again
  std::filesystem::path data_dir = {};
  /// "model.hops=2,4", or a grid (train/grid.h) by its file or name; empty: the usual ones for the
  /// data
  std::vector<std::string> axes = {};
  std::int64_t random = 0;  ///< so many points of the axes; 0: all, of the usual ones 16
  bool halving = false;     ///< short trainings first, the best third goes on longer
  std::vector<std::int64_t> seeds =
      {};  ///< each trial is trained on all of them; empty: the config's
  std::vector<std::int64_t> splits = {};  ///< the same
  /// Asked before and while a trial is trained: true ends the search with what there is.
  std::function<bool()> is_over = {};
  ranks::Communicator* ranks = nullptr;  ///< that share the trials; null: this process alone
};

/// One point of the search, trained for `epochs`.
struct Trial {
  std::vector<std::string> settings = {};  ///< empty: the defaults
  std::int64_t epochs = 0;
  std::vector<double> val = {};  ///< of each seed and split
  std::vector<double> test = {};
  double seconds = 0.0;
  std::string error = {};          ///< why it came to nothing
  std::filesystem::path run = {};  ///< folder of its first training

  double val_mean() const;
};

struct TuneOutcome {
  std::string metric = {};
  std::vector<Trial> trials = {};  ///< best first: longer trainings before shorter ones
  std::int64_t tried = 0;          ///< settings, failed ones included
  std::int64_t planned = 0;
  bool is_complete = true;  ///< false: stopped before all was tried
};

/// Told after each trial.
using OnTrial = std::function<void(const TuneOutcome& so_far, const Trial& trial)>;

/// Runs the search. After each trial trials.csv (all), tune.json (the outcome) and best.toml (all
/// settings of the best) are in the folder. Of several ranks each trains some of the trials by
/// itself and tells the others through the store, so that all of them go on with the same ones;
/// rank 0 writes the files, which are the same for any number of ranks but for the seconds. Throws
/// base::Error if an axis or a setting is not possible, before anything is trained, and if no trial
/// came to an end although time was left.
TuneOutcome tune(const train::Config& base, const TuneOptions& options, const TrainRun& train_run,
                 const OnTrial& on_trial = {});

/// All trials, best first, and what the best gives on test.
std::string to_text(const TuneOutcome& outcome);
std::string to_json(const TuneOutcome& outcome, const std::filesystem::path& folder,
                    int indent = -1);
/// "val roc_auc 0.8123 (best 0.8345)  12 s  model.hops=2", a line of a table that grows.
std::string line_of(const TuneOutcome& so_far, const Trial& trial);

/// Epochs of the rounds of a halving search over `points`: each three times the one before, the
/// last is `epochs`.
std::vector<std::int64_t> halving_rounds(std::int64_t points, std::int64_t epochs);

}  // namespace mpssm::run
