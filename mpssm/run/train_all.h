// SPDX-License-Identifier: MIT
// One config on several splits and seeds.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "mpssm/report/run_record.h"
#include "mpssm/train/config.h"

namespace mpssm::run {

/// Trains one config into a folder; nullopt: interrupted.
using TrainRun = std::function<std::optional<report::RunRecord>(const train::Config& config,
                                                                const std::filesystem::path& run)>;

/// Splits times seeds (none given: those of the config), each in a folder of its own below
/// `folder`, and, if `writes`, summary.json beside them. nullopt: interrupted.
std::optional<std::vector<report::RunRecord>> train_all(const train::Config& config,
                                                        std::vector<std::int64_t> splits,
                                                        std::vector<std::int64_t> seeds,
                                                        const std::filesystem::path& folder,
                                                        bool writes, const TrainRun& train_run);

}  // namespace mpssm::run
