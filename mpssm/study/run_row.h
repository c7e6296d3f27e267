// SPDX-License-Identifier: MIT
// Running a row of the paper: its settings, its seeds and splits, what its runs gave.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>

#include "mpssm/report/run_record.h"
#include "mpssm/study/provenance.h"
#include "mpssm/study/results.h"
#include "mpssm/study/rows.h"
#include "mpssm/train/config.h"

namespace mpssm::study {

struct RunOptions {
  bool quick = false;         ///< small data or few epochs, one run
  std::int64_t max_runs = 0;  ///< the first of the protocol; 0: all
  std::filesystem::path out;  ///< folder of the runs
  Provenance program = {};    ///< that runs them
};

/// Trains a run in a folder, or goes on there; nullopt: interrupted.
using TrainRun = std::function<std::optional<report::RunRecord>(const train::Config& config,
                                                                const std::filesystem::path& run)>;

/// What the runs take from the row; seed and split are set for each.
train::Config config_of(const Row& row, bool quick);

/// Whether a registered dataset's files are not there.
bool is_absent(const std::string& dataset, const std::filesystem::path& data_dir);

/// Runs the row; finished runs are read again, interrupted ones go on. nullopt: interrupted.
std::optional<RowResult> run_row(const Experiment& experiment, const Row& row,
                                 const RunOptions& options, const TrainRun& train_run);

/// Whether what is recorded of a row is what running it would give.
enum class Recorded {
  kNo,             ///< nothing, or fewer runs
  kOtherSettings,  ///< enough runs, but not of these settings
  kYes
};
/// `known`: what is recorded, or nullptr; `origin` names its file in messages.
Recorded is_recorded(const RowResult* known, const Row& row, const RunOptions& options,
                     const std::string& origin);

}  // namespace mpssm::study
