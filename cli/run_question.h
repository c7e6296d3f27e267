// SPDX-License-Identifier: MIT
// A question about a trained model, and the parts of its answer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mpssm/analysis/influence.h"
#include "mpssm/data/bare_graph.h"
#include "mpssm/nn/model.h"
#include "mpssm/train/experiment.h"
#include "mpssm/train/problem.h"

#include "cli/sensitivity.h"

namespace mpssm::cli {

/// A trained network with one of its inputs.
struct OpenRun {
  std::string name;  ///< of the folder
  train::Experiment experiment;
  train::Problem::Sample sample;
  data::BareGraph bare;  ///< of the sample

  nn::GraphModule& network() const { return *experiment.model.module; }
  /// Null if the network is no MP-SSM.
  const nn::ModelImpl* model() const { return dynamic_cast<const nn::ModelImpl*>(&network()); }
  std::int64_t num_nodes() const { return sample.gso.num_nodes(); }
  /// One prediction for the whole graph, rather than one for each node.
  bool is_graph_level() const;
  std::string name_of(std::int64_t node) const { return node_name(bare, node); }
};
/// Throws io::InputError.
OpenRun open_run(const std::string& run, const SensitivityOptions& options);

struct RunQuestion {
  const SensitivityOptions& options;
  std::vector<std::int64_t> taus;
  OpenRun run;
  std::int64_t source = -1;  ///< -1: none
  std::int64_t target = -1;
};

/// Radius, norms and reach of each block's W. Returns ||W^tau|| of each block at question.taus.
std::vector<std::vector<double>> answer_blocks(const RunQuestion& question, Answer& answer);
/// From source to target: end to end, and inside one block.
void answer_run_pair(const RunQuestion& question,
                     const std::vector<std::vector<double>>& block_norms, Answer& answer);
/// What predictions depend on. Returns the influence of every node on the first of them; empty if
/// none was asked for.
std::vector<double> answer_predictions(const RunQuestion& question, Answer& answer);

}  // namespace mpssm::cli
