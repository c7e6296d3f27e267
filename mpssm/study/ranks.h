// SPDX-License-Identifier: MIT
// Average ranks over the paper's printed tables, ours as one more model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mpssm/study/results.h"

namespace mpssm::study {

/// A printed table of a whole benchmark; configs/reproduce/ranks.toml.
struct RankTable {
  struct Task {
    std::string name;
    std::string experiment;  ///< where ours is recorded
    std::string row;
    bool higher_is_better = true;
  };
  struct Model {
    std::string name;
    std::vector<double> values;     ///< of each task; NaN: not given, infinite: out of memory
    std::optional<double> printed;  ///< average rank
  };
  std::string title;
  std::vector<Task> tasks;
  std::vector<Model> models;
};

/// All of them.
const std::vector<RankTable>& rank_tables();

/// Average rank of each model over the tasks chosen (by index), as the paper takes it: equal values
/// share the better rank, out of memory comes right after all numbers, what is not given does not
/// count. NaN: nothing is given.
std::vector<double> average_ranks(const RankTable& table, const std::vector<std::size_t>& tasks);

/// For the page: per table the best ten, the paper's model and ours, over all its tasks and over
/// those that are recorded with all runs. Ours is one more model in the second.
std::string ranks_markdown(const AllResults& results);

}  // namespace mpssm::study
