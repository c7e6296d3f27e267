// SPDX-License-Identifier: MIT
// One config on several splits and seeds.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "mpssm/ranks/communicator.h"
#include "mpssm/report/run_record.h"
#include "mpssm/train/config.h"

namespace mpssm::run {

/// Trains one config into a folder, by these ranks together, or by this process alone if there are
/// none; nullopt: interrupted.
using TrainRun = std::function<std::optional<report::RunRecord>(
    const train::Config& config, const std::filesystem::path& run, ranks::Communicator* together)>;

/// Splits times seeds (none given: those of the config), each in a folder of its own below
/// `folder`, and summary.json beside them, by rank 0. nullopt: interrupted. If there is a run for
/// every rank, each trains some of them by itself and tells rank 0 through the store; the others
/// get no records then. Fewer runs, and those on a graph in parts, all ranks train together.
std::optional<std::vector<report::RunRecord>> train_all(
    const train::Config& config, std::vector<std::int64_t> splits, std::vector<std::int64_t> seeds,
    const std::filesystem::path& folder, ranks::Communicator& ranks, const TrainRun& train_run);

}  // namespace mpssm::run
