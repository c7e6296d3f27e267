// SPDX-License-Identifier: MIT
// One training run from the command line: memory check, progress, interruption, result.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "mpssm/report/run_record.h"
#include "mpssm/train/experiment.h"

#include "cli/verbs.h"

namespace mpssm::cli {

struct TrainingOptions {
  std::filesystem::path folder;
  std::filesystem::path data_dir;
  std::int64_t memory_limit_mib = 0;
  bool resume = false;
  bool quiet = false;
};

/// nullopt: interrupted; what to do next has been said.
std::optional<report::RunRecord> train_once(const train::Config& config,
                                            const TrainingOptions& options);

/// config.toml of a run folder.
train::Config read_run_config(const std::filesystem::path& folder);

/// The metrics of a record for people: the one that counts first, references below.
std::string summary_of(const report::RunRecord& record);

}  // namespace mpssm::cli
