// SPDX-License-Identifier: MIT
// Why the settings of a run are what they are, for people and for programs.
#pragma once

#include <string>

#include "mpssm/run/experiment.h"

namespace mpssm::run {

/// What a training is about to do: the card of its data, the size of its network, where it writes,
/// what was chosen by rules.
std::string introduction(const Experiment& experiment, const std::filesystem::path& folder);

/// All settings with their defaults and what they mean.
std::string keys_table();

/// Each setting that a rule looks after, its value, and what the rule saw.
std::string to_text(const Explained& explained);
std::string to_json(const Explained& explained);

}  // namespace mpssm::run
