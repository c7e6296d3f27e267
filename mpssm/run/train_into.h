// SPDX-License-Identifier: MIT
// A training run from its first file to its record.
#pragma once

#include <optional>

#include "mpssm/report/run_record.h"
#include "mpssm/run/experiment.h"
#include "mpssm/run/run_folder.h"
#include "mpssm/train/trainer.h"

namespace mpssm::run {

/// Trains into a folder: data.json and config.toml first, then metrics.csv, model.safetensors and
/// state.safetensors at every checkpoint, predictions.csv, report.html and, when all is done,
/// record.json.
/// nullopt: interrupted, can be resumed. A finished run that is resumed gives its record again.
/// `ranks`: those that train together; rank 0 writes, all get the record.
std::optional<report::RunRecord> train_into(const RunFolder& folder, Experiment& experiment,
                                            bool resume, const train::TrainHooks& hooks = {},
                                            ranks::Communicator* ranks = nullptr);

}  // namespace mpssm::run
