// SPDX-License-Identifier: MIT
// A trained run at one of its inputs: what questions about its network need.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "mpssm/analysis/advice.h"
#include "mpssm/analysis/graph_edit.h"
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

/// The graph that a run learned on, or that a dataset, file or family (load_or_make_graph) holds.
/// Throws base::Error if it is many graphs.
data::BareGraph graph_of(const std::string& run_or_graph,
                         const std::filesystem::path& data_dir = {});

/// Edges "u,v" by the names of their nodes; ids with a comma in them cannot be given. Throws
/// base::Error, beginning with "--remove" or "--add", if there is no such node, an edge to remove
/// is not there or one to add is.
analysis::GraphEdit edit_of(const data::BareGraph& graph, const std::vector<std::string>& remove,
                            const std::vector<std::string>& add, double weight);

/// Predictions of a trained run on its graph as it is and as edited: the network runs on both, so
/// they are exact. Of a series, the first step ahead from the first window. The `count` largest
/// changes are listed.
analysis::PredictionChanges changed_predictions(const std::filesystem::path& run,
                                                const std::filesystem::path& data_dir,
                                                const analysis::GraphEdit& edit,
                                                std::int64_t count = 10);

/// Whether a path is a run folder.
bool is_run(const std::filesystem::path& path);

/// At most `count` nodes of the test part, evenly spread over it; of all nodes if there are no
/// parts.
std::vector<std::int64_t> spread_over_test(const data::Dataset& dataset, std::int64_t split,
                                           std::int64_t num_nodes, std::int64_t count);
std::vector<std::int64_t> spread_over_test(const OpenRun& run, std::int64_t count);

/// Whether both have the same nodes and edges, whatever their weights.
bool have_same_graph(const OpenRun& a, const OpenRun& b);

}  // namespace mpssm::run
