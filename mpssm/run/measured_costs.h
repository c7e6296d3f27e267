// SPDX-License-Identifier: MIT
// Prices of work on this machine, measured once and kept in the user's cache folder.
#pragma once

#include <filesystem>
#include <functional>

#include "mpssm/engine/plan_costs.h"

namespace mpssm::run {

/// The prices kept in `folder` for this machine, or else those that `measure` finds, which are then
/// kept there: every run on the machine plans alike. What cannot be read, or was kept for another
/// machine, is measured anew; where nothing can be written the built-in prices are taken, because
/// measured at every start they would differ from run to run.
engine::PlanCosts measured_plan_costs(const std::filesystem::path& folder,
                                      const std::function<engine::PlanCosts()>& measure);

/// The same in $XDG_CACHE_HOME/mpssm (or ~/.cache/mpssm), by engine::calibrate_plan_costs().
engine::PlanCosts measured_plan_costs();

}  // namespace mpssm::run
