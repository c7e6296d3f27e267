// SPDX-License-Identifier: MIT
// Running the rows of an experiment that are not recorded yet, and recording them.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "mpssm/study/run_row.h"

namespace mpssm::study {

struct ExperimentOptions {
  std::string row = {};  ///< one of them; empty: all
  RunOptions run = {};
  std::filesystem::path results = {};  ///< folder of the recorded results
  std::filesystem::path data_dir = {};
  std::function<void(const std::string&)> say = {};  ///< what becomes of each row
};

/// False: interrupted; the same call goes on. Throws base::Error if there is no such row.
bool run_experiment(const Experiment& experiment, const ExperimentOptions& options,
                    const TrainRun& train_run);

/// Its rows with what is recorded of them, below a title.
std::string outcome_of(const Experiment& experiment, const ExperimentOptions& options);

}  // namespace mpssm::study
