// SPDX-License-Identifier: MIT
// Questions about a bare graph: from what is asked to the numbers of graph_answers.h.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mpssm/analysis/all_pairs.h"
#include "mpssm/analysis/deep_limit.h"
#include "mpssm/analysis/graph_answers.h"
#include "mpssm/engine/executor.h"
#include "mpssm/graph/graph.h"
#include "mpssm/graph/gso.h"

namespace mpssm::analysis {

/// What to find out beside the profile.
struct GraphWishes {
  double w = 1.0;
  bool lambda_star = false;          ///< also where the search takes long
  bool bounds = false;               ///< of a pair or of all pairs
  std::optional<double> depth = {};  ///< share of the limit, which has to be known
  std::int64_t max_tau = 100'000;    ///< where the search for the depth gives up
  std::int64_t worst = 0;            ///< so many of the worst pairs at the last tau
  Order order = Order::kValue;       ///< of these; kShare needs the limit
  bool vanishing = false;
  std::int64_t seed = 0;  ///< of `vanishing`
  bool map = false;       ///< GraphAnswer::map, up to kMaxDensePower nodes
  bool of_node = false;   ///< GraphAnswer::of_node
};

/// An entry of A^tau, or its size, times |w|^tau, which may overflow.
double scaled(double entry, double w, std::int64_t tau);

/// S_ij(tau) = |(A^tau)_ij| |w|^tau of this graph: of a pair if source and target are given, of
/// what one node sends or hears if one of them is, else of all pairs.
struct GraphQuestion {
  /// Makes the operator, and the limit if it is known. `taus` ascend, there is at least one.
  GraphQuestion(const graph::Graph& graph, graph::GsoKind kind, std::vector<std::int64_t> taus);
  /// Of an operator as it is. Its graph is the one it was normalised from if that can be told, and
  /// has its entries as weights if not; the limit is known in the first case only.
  GraphQuestion(const graph::Gso& gso, std::vector<std::int64_t> taus);

  graph::Graph graph;
  graph::Gso gso;
  std::vector<std::int64_t> taus;
  std::shared_ptr<const DeepLimit> limit;  ///< null: not known
  std::string why_no_limit;                ///< the end of a sentence; empty: there is one
  std::int64_t source = -1;                ///< -1: none
  std::int64_t target = -1;
  bool extremes = true;  ///< of all pairs; up to kMaxAllPairs nodes
  GraphWishes wishes = {};

  bool is_pair() const { return source >= 0 && target >= 0; }
  bool is_whole() const { return source < 0 && target < 0; }
  /// The steps that all pairs of nodes have to go; nullopt: no question about them.
  std::optional<std::int64_t> steps_of_all_pairs() const;
  double scaled(double entry, std::int64_t tau) const {
    return analysis::scaled(entry, wishes.w, tau);
  }
};

/// Source and target that a graph of this name is usually asked for: of the paper's chain of
/// cliques ("clique-chain:6x10") the first bridge node and the last, if there are two. They are the
/// last nodes, of degree 2.
std::optional<std::pair<std::int64_t, std::int64_t>> usual_pair(std::string_view name,
                                                                const graph::Graph& graph);

/// Called with its name when a stage of the work begins; what it returns is told the share done.
using Stages = std::function<BlockProgress(const std::string& stage)>;

/// Throws base::Error, beginning with the option of the program that asks for it, if the graph,
/// called `name`, does not allow for the question.
void check(const GraphQuestion& question, const std::string& name);

GraphAnswer answer(const GraphQuestion& question, const engine::Executor& executor,
                   const Stages& stages = {});

}  // namespace mpssm::analysis
