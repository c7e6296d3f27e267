// SPDX-License-Identifier: MIT
// What a careful colleague would say of a training: that it takes long, that it ended early, that
// it overfits.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "mpssm/report/run_page.h"
#include "mpssm/report/run_record.h"
#include "mpssm/train/config.h"
#include "mpssm/train/trainer.h"

namespace mpssm::run {

/// Of a training that will take more than an hour: how long, and which smaller setting to try;
/// empty if it will not, or if it is too early to say.
std::string time_remark(const train::Config& config, const train::Progress& progress);

/// Of a training that has ended, from its evaluations (metrics.csv).
std::vector<std::string> remarks_on(const report::RunRecord& record, const train::Config& config,
                                    const report::History& history);

/// The same of a run folder.
std::vector<std::string> remarks_on(const std::filesystem::path& folder);

}  // namespace mpssm::run
