// SPDX-License-Identifier: MIT
// A search over settings written down as a file: TOML like that of a config, with a list of values
// where a setting is searched.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mpssm::train {

struct Config;

/// What a file says: settings that all points share ("model.state=dense") and axes
/// ("model.hops=1,2,4").
struct Grid {
  std::vector<std::string> settings = {};
  std::vector<std::string> axes = {};
};

/// `origin` names the text in messages. Throws base::Error: syntax, and a value that is neither
/// number, text, true, false nor a list of such.
Grid grid_from_toml(std::string_view text, const std::string& origin);

/// Of a file, or of a grid that is shipped (configs/grids/<name>.toml) by its name. Throws
/// base::Error if there is neither.
Grid read_grid(const std::string& file_or_name);

/// `axes` with those that are no KEY=A,B,C read as grids, and the settings of these grids in
/// `base`. What base.given has is kept, and not searched.
std::vector<std::string> with_grids(const std::vector<std::string>& axes, Config& base);

/// Shipped grids by name, or nullptr.
const char* grid_toml(std::string_view name);

}  // namespace mpssm::train
