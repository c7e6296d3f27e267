// SPDX-License-Identifier: MIT
// Running a row of the paper: its candidates on validation, then its seeds and splits with the one
// that was chosen, and what they gave.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>

#include "mpssm/report/run_record.h"
#include "mpssm/study/provenance.h"
#include "mpssm/study/results.h"
#include "mpssm/study/rows.h"
#include "mpssm/study/selection.h"
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

/// What the runs take from the row and one of its candidates; seed and split are set for each.
train::Config config_of(const Row& row, bool quick, const Settings& candidate = {});

/// Whether a registered dataset's files are not there.
bool is_absent(const std::string& dataset, const std::filesystem::path& data_dir);

/// Trains the candidates that `selection` lacks, on validation; finished runs are read again,
/// interrupted ones go on. `on_run` is told after each. False: interrupted.
bool run_candidates(const Experiment& experiment, const Row& row, const RunOptions& options,
                    const TrainRun& train_run, Selection& selection,
                    const std::function<void()>& on_run);

/// Runs the row with the candidate that was chosen (empty: it has none) of `compared`; `on_run` is
/// told what there is after each run. nullopt: interrupted. Runs of `known` (null: none) with the
/// settings of the row stay as they are recorded where their folders are gone, so that a long row
/// can be finished on another machine.
std::optional<RowResult> run_row(const Experiment& experiment, const Row& row,
                                 const RunOptions& options, const Settings& chosen,
                                 const RowResult* known, const TrainRun& train_run,
                                 const std::function<void(const RowResult&)>& on_run);

/// In which setting a recorded run is not what the row says, with that candidate: "KEY is a there,
/// b here"; empty: in none. `origin` names its file in messages.
std::string difference_from_row(const std::string& recorded_config, const Row& row, bool quick,
                                const Settings& candidate, const std::string& origin);

}  // namespace mpssm::study
