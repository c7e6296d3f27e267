// SPDX-License-Identifier: MIT
// Which of the shipped settings (configs/) a dataset starts from.
#pragma once

#include <string>

#include "mpssm/train/config.h"

namespace mpssm::train {

/// Whose settings a dataset starts from: its own, or those of its family ("board" for
/// "board:50x50", "traffic" for "pems-bay"); "" for a path, which has none.
std::string preset_name(const std::string& dataset);

/// Defaults, then those settings; where there are none, by_rules is set. data.name is left to the
/// caller.
Config preset_config(const std::string& dataset);

/// The text of a file with settings, or of a shipped one by its name (such as "paper"); a file of
/// that name comes first. Throws base::Error if there is neither.
std::string settings_text(const std::string& file_or_name);

}  // namespace mpssm::train
