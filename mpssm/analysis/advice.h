// SPDX-License-Identifier: MIT
// Advice about a graph, as data: how deep a model has to be, which edge to add, what a change does.
// report/ makes words and JSON of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mpssm/analysis/all_pairs.h"
#include "mpssm/analysis/graph_edit.h"
#include "mpssm/analysis/graph_question.h"
#include "mpssm/analysis/model_advice.h"
#include "mpssm/analysis/removal.h"
#include "mpssm/analysis/rewire.h"
#include "mpssm/engine/executor.h"
#include "mpssm/graph/graph.h"

namespace mpssm::analysis {

/// Hops until a share of the pairs has its share of the limit.
struct DepthStep {
  double of_pairs = 1.0;                  ///< 0.99: of 99 % of the ordered pairs of a component
  std::optional<std::int64_t> hops = {};  ///< from there on; nullopt: not up to max_tau
};

struct DepthAdvice {
  double share = 0.5;  ///< of the limit
  std::int64_t max_tau = 0;
  std::vector<DepthStep> steps = {};  ///< by rising share of pairs; the last is all of them
  // What that many hops cost here, measured: one pass of the recurrence, forward.
  std::int64_t channels = 64;
  double seconds_per_hop = 0.0;  ///< 0: not measured
};

/// Throws std::invalid_argument if no limit is known for the graph (see why_no_deep_limit).
DepthAdvice advise_depth(const graph::Graph& graph, double share, std::int64_t max_tau,
                         const engine::Executor& executor, const BlockProgress& progress = {});

/// What a trained network predicts for a node on the graph as it is and as it would be.
struct PredictionChange {
  std::int32_t node = 0;
  std::string before = {};  ///< class, or empty
  std::string after = {};
  double value_before = 0.0;  ///< probability of the class `before`, or the number predicted
  double value_after = 0.0;   ///< of the same class
};

struct PredictionChanges {
  std::int64_t changed = 0;                    ///< nodes, by more than rounding
  std::int64_t other_class = 0;                ///< nodes
  std::vector<PredictionChange> largest = {};  ///< by the change of the value
};

/// What an edited graph does to the pairs.
struct WhatIfAnswer {
  GraphEdit edit = {};
  std::int64_t tau = 0;
  std::int64_t source = -1;  ///< -1: none was asked for
  std::int64_t target = -1;
  double pair_before = 0.0;  ///< |(A^tau)_ij|, if both were
  double pair_after = 0.0;
  /// With a source: nodes that hear it otherwise, the largest change first.
  struct Hearer {
    std::int32_t node = 0;
    double before = 0.0;
    double after = 0.0;
  };
  std::vector<Hearer> hearers = {};
  std::int64_t changed = 0;        ///< nodes that hear it otherwise
  std::int64_t products = 0;       ///< entries multiplied to find out
  std::int64_t full_products = 0;  ///< what two whole walks take
  // Over all pairs, of graphs up to kMaxDensePower nodes.
  std::optional<PairValue> least_before = {};
  std::optional<PairValue> least_after = {};
  std::int64_t components_before = 0;
  std::int64_t components_after = 0;
  std::optional<PredictionChanges> predictions = {};  ///< of a run; left to the caller
};

/// `source` and `target` may be -1. Throws base::Error if the edit does not fit the graph.
WhatIfAnswer what_if(const graph::Graph& graph, graph::GsoKind kind, const GraphEdit& edit,
                     std::int64_t tau, std::int64_t source, std::int64_t target,
                     const engine::Executor& executor);

/// What to find out about one graph; nothing of it is asked for by default.
struct AdviceQuestion {
  graph::Graph graph = {};
  std::optional<double> depth = {};  ///< share of the limit
  std::int64_t max_tau = 10'000;
  std::int64_t rewire = 0;  ///< so many edges
  std::int64_t rounds = 0;  ///< so many edges, one after the other
  std::int64_t spare = 0;   ///< so many edges that a pair misses least
  Order order = Order::kValue;
  GraphEdit edit = {};  ///< what if; its weight is that of advised edges, too
  std::int64_t tau = 50;
  std::int64_t source = -1;  ///< -1: none
  std::int64_t target = -1;
};

struct Advice {
  std::optional<DepthAdvice> depth = {};
  std::optional<RewireAnswer> rewire = {};
  std::vector<RewireRound> rounds = {};
  std::int64_t rounds_tau = 0;
  std::optional<RemovalAnswer> spare = {};
  std::optional<WhatIfAnswer> what_if = {};
  // Of a trained network; left to the caller.
  std::optional<EdgesAnswer> edges = {};
  std::optional<Attribution> attribution = {};
  std::optional<Robustness> robustness = {};
};

/// What the advice comes to, for a graph to train on: edges of the rounds (or the best one, if
/// there were none) and those of the question are put in; harmful ones and those of the question
/// are taken out.
GraphEdit advised_edit(const Advice& advice, double weight);

/// Throws base::Error if a question cannot be answered for this graph.
Advice advise(const AdviceQuestion& question, const engine::Executor& executor,
              const Stages& stages = {});

}  // namespace mpssm::analysis
