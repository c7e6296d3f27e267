// SPDX-License-Identifier: MIT
// A trained run at one of its inputs: what questions about its network need.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "mpssm/data/bare_graph.h"
#include "mpssm/run/experiment.h"
#include "mpssm/task/problem.h"

namespace mpssm::run {

struct OpenRun {
  std::string name;  ///< of the folder
  Experiment experiment;
  task::Problem::Sample input = {};
  data::BareGraph graph = {};    ///< that the input lies on
  bool predicts_graphs = false;  ///< one prediction for the whole graph, not one for each node
};
OpenRun open_run(const std::filesystem::path& path, const ReopenOptions& options = {});
/// Fills in all but name and experiment. Throws base::Error if there is no such sample.
void take_sample(OpenRun& run, std::int64_t index);

/// At most `count` nodes of the test part, evenly spread over it; of all nodes if there are no
/// parts.
std::vector<std::int64_t> spread_over_test(const OpenRun& run, std::int64_t count);

/// Whether both have the same nodes and edges, whatever their weights.
bool have_same_graph(const OpenRun& a, const OpenRun& b);

}  // namespace mpssm::run
