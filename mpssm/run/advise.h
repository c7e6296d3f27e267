// SPDX-License-Identifier: MIT
// Advice about a graph or a run: from the words of a user to the numbers of analysis/.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "mpssm/analysis/advice.h"
#include "mpssm/data/bare_graph.h"
#include "mpssm/run/experiment.h"

namespace mpssm::run {

struct AdviceRequest {
  std::string what = {};  ///< run folder, or a graph as load_or_make_graph takes it
  std::filesystem::path data_dir = {};
  analysis::AdviceQuestion question = {};  ///< graph, nodes and edit are filled in from the rest
  std::string source = {}, target = {};    ///< nodes by name; empty: none
  std::vector<std::string> remove = {}, add = {};  ///< edges "u,v"
  double weight = 1.0;                             ///< of new edges
  // Of a run.
  std::int64_t edges = 0;  ///< so many that the loss of the validation part wants gone, or least
  bool attribute = false;  ///< what the state and the prediction of `target` are made of
  std::int64_t block = 1;
  double epsilon = 0.0;                ///< by which features move; 0: no question
  std::vector<std::string> move = {};  ///< nodes whose features do; none: all
};

struct AdviceResult {
  data::BareGraph graph = {};
  analysis::Advice advice = {};
  // Of a page alone.
  std::vector<analysis::PairValue> worst = {};  ///< pairs, in worst_tau hops
  std::int64_t worst_tau = 0;
  double lambda_star = 0.0;  ///< 0: not looked for
};

/// Without a question: depth and new edges. Throws base::Error if one does not fit, beginning with
/// the option.
AdviceResult advise(const AdviceRequest& request, const engine::Executor& executor,
                    const analysis::Stages& stages = {});

/// What the page of a run says without being asked, as far as it is cheap: edges that matter; of
/// small graphs, what the prediction of `node` is made of (empty: of none), the depth that pairs
/// need and the best edge for the worst pair.
AdviceResult advice_for_page(const Experiment& experiment, const std::string& node);

/// Writes the advised edges (analysis::advised_edit) to a file that read_edit() reads. Throws
/// base::Error if there are none, or the file is of another kind.
void save_edit(const AdviceResult& result, double weight, const std::filesystem::path& path);

/// The page of an answer: tables, and the graph with the advised edges.
std::string advice_page(const AdviceResult& result, std::int64_t tau);

/// Where some predictions of the test part listen: the share of their influence by hops, as a mean
/// over at most `count` of them, evenly spread. Empty for networks on many graphs.
struct Listening {
  std::vector<double> share_of_hop = {};
  double mean_hop = 0.0;
  std::int64_t predictions = 0;
};
Listening listening_of(const Experiment& experiment, std::int64_t count);

}  // namespace mpssm::run
