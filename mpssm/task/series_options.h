// SPDX-License-Identifier: MIT
// What a network is shown of a series.
#pragma once

#include <cstdint>
#include <optional>

#include "mpssm/data/period.h"

namespace mpssm::task {

struct SeriesOptions {
  /// None: as stored if the data mark missing readings by a value, else the last one.
  std::optional<data::Fill> fill = {};
  bool mark_missing = false;   ///< one more channel: 1 where a reading is missing
  bool deviation = false;      ///< from the mean of the period, as input and target
  std::int64_t harmonics = 0;  ///< of the period, as inputs
};

}  // namespace mpssm::task
