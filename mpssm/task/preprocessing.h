// SPDX-License-Identifier: MIT
// What a model has to know of the data it was trained on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mpssm/data/dataset.h"

namespace mpssm::task {

struct Preprocessing {
  std::vector<data::Column> columns = {};
  std::vector<std::string> class_names = {};
  std::vector<std::int32_t> vocabulary = {};    ///< packed graphs: codes that each column may hold
  std::vector<data::Column> edge_columns = {};  ///< data.encodings=edges: how they became numbers
  double label_scale = 1.0;
  double mean = 0.0;   ///< series: of the training inputs; node regression: of the labels
  double scale = 1.0;  ///< their standard deviation
  /// Series: means of the nodes at each place of the period, [slots, N]; empty: not used.
  std::vector<float> period_mean = {};
};

}  // namespace mpssm::task
