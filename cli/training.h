// SPDX-License-Identifier: MIT
// One training run from the command line: memory check, progress, interruption, result.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "mpssm/report/run_record.h"
#include "mpssm/run/prepared_run.h"

#include "cli/verbs.h"

namespace mpssm::cli {

struct TrainingOptions {
  std::filesystem::path folder;
  std::filesystem::path data_dir;
  std::int64_t memory_limit_mib = 0;
  bool resume = false;
  bool quiet = false;
  bool may_last_longer = false;            ///< with resume: more epochs than it was started with
  bool is_part = false;                    ///< of a search, which says how to go on
  bool with_notes = true;                  ///< on the data
  std::function<bool()> should_stop = {};  ///< beside a signal
  ranks::Communicator* ranks = nullptr;    ///< those that train together
};

/// nullopt: interrupted; what to do next has been said.
std::optional<report::RunRecord> train_once(const train::Config& config,
                                            const TrainingOptions& options);

}  // namespace mpssm::cli
