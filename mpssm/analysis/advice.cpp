// SPDX-License-Identifier: MIT
#include "mpssm/analysis/advice.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fmt/core.h>
#include <numeric>
#include <stdexcept>
#include <string>

#include "mpssm/analysis/deep_limit.h"
#include "mpssm/analysis/walk.h"
#include "mpssm/base/error.h"
#include "mpssm/engine/spmm.h"
#include "mpssm/graph/distances.h"

namespace mpssm::analysis {
namespace {

/// One product A X of that many channels, the quickest of some.
double seconds_of_hop(const graph::Gso& gso, std::int64_t channels,
                      const engine::Executor& executor) {
  using Clock = std::chrono::steady_clock;
  std::vector<float> x(static_cast<std::size_t>(gso.num_nodes() * channels), 1.0F), y(x.size());
  double least = INFINITY;
  for (int round = 0; round < 3; ++round) {
    const auto start = Clock::now();
    engine::spmm(gso.view<float>(), x.data(), channels, y.data(), executor);
    least = std::min(least, std::chrono::duration<double>(Clock::now() - start).count());
    std::swap(x, y);
  }
  return least;
}

}  // namespace

DepthAdvice advise_depth(const graph::Graph& graph, double share, std::int64_t max_tau,
                         const engine::Executor& executor, const BlockProgress& progress) {
  const std::string obstacle = why_no_deep_limit(graph);
  if (!obstacle.empty()) throw std::invalid_argument("advise_depth: " + obstacle);
  const graph::Gso gso = graph::make_gso(graph);
  const DeepLimit limit(graph);
  const std::vector<double> reached =
      reached_shares(gso, limit, share, max_tau, executor, progress);
  DepthAdvice advice{.share = share, .max_tau = max_tau};
  for (const double of_pairs : {0.5, 0.9, 0.99, 1.0}) {
    // Single pairs may fall below again: from the tau on that nothing later undoes.
    std::int64_t from = std::ssize(reached);
    while (from > 0 && reached[from - 1] >= of_pairs) --from;
    const bool is_reached = from < std::ssize(reached);
    advice.steps.push_back(
        {of_pairs, is_reached ? std::optional<std::int64_t>(from) : std::nullopt});
  }
  advice.seconds_per_hop = seconds_of_hop(gso, advice.channels, executor);
  return advice;
}

WhatIfAnswer what_if(const graph::Graph& graph, graph::GsoKind kind, const GraphEdit& edit,
                     std::int64_t tau, std::int64_t source, std::int64_t target,
                     const engine::Executor& executor) {
  const graph::Graph changed = edited(graph, edit);
  const graph::Gso before = graph::make_gso(graph, {.kind = kind});
  const graph::Gso after = graph::make_gso(changed, {.kind = kind});
  WhatIfAnswer answer{.edit = edit, .tau = tau, .source = source, .target = target};
  answer.components_before = graph::components(graph).count;
  answer.components_after = graph::components(changed).count;
  if (source >= 0) {
    std::vector<double> unit(static_cast<std::size_t>(graph.num_nodes()), 0.0);
    unit[source] = 1.0;
    const std::vector<std::int32_t> touched = touched_nodes(edit);
    const StateChange change = changed_states(
        {.before = before, .after = after, .touched = touched, .input = unit, .steps = tau});
    answer.products = change.products;
    answer.full_products = tau * (before.num_nonzeros() + after.num_nonzeros());
    for (std::size_t n = 0; n < change.nodes.size(); ++n) {
      if (change.before[n] == change.after[n]) continue;
      answer.hearers.push_back({change.nodes[n], change.before[n], change.after[n]});
    }
    answer.changed = std::ssize(answer.hearers);
    std::stable_sort(answer.hearers.begin(), answer.hearers.end(),
                     [](const auto& a, const auto& b) {
                       return std::abs(a.after - a.before) > std::abs(b.after - b.before);
                     });
    if (target >= 0) {
      const auto found = std::lower_bound(change.nodes.begin(), change.nodes.end(), target);
      if (found != change.nodes.end() && *found == target) {
        answer.pair_before = std::abs(change.before[found - change.nodes.begin()]);
        answer.pair_after = std::abs(change.after[found - change.nodes.begin()]);
      } else {
        // Too far from the change to notice it.
        const std::int64_t taus[] = {tau};
        answer.pair_before = answer.pair_after =
            std::abs(pair_profile(before, source, target, taus, executor)[0]);
      }
    }
  }
  if (graph.num_nodes() <= kMaxDensePower) {
    const std::int64_t taus[] = {tau};
    answer.least_before = extremes(before, taus, executor)[0].least;
    answer.least_after = extremes(after, taus, executor)[0].least;
  }
  return answer;
}

std::vector<NodeShare> largest_shares(const std::vector<double>& of_node,
                                      const std::vector<std::int32_t>& hops, std::int64_t count) {
  std::vector<std::int64_t> order(of_node.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return std::abs(of_node[a]) > std::abs(of_node[b]);
  });
  std::vector<NodeShare> shares;
  for (const std::int64_t node : order) {
    if (std::ssize(shares) == count || of_node[node] == 0.0) break;
    shares.push_back({node, hops[node], of_node[node]});
  }
  return shares;
}

GraphEdit advised_edit(const Advice& advice, double weight) {
  GraphEdit edit = advice.what_if ? advice.what_if->edit : GraphEdit();
  edit.weight = weight;
  for (const RewireRound& round : advice.rounds) edit.add.emplace_back(round.u, round.v);
  if (advice.rounds.empty() && advice.rewire && !advice.rewire->edges.empty()) {
    edit.add.emplace_back(advice.rewire->edges[0].u, advice.rewire->edges[0].v);
  }
  if (advice.edges) {
    for (const EdgeEffect& edge : advice.edges->harmful) edit.remove.emplace_back(edge.u, edge.v);
    edit.saw_validation = !advice.edges->harmful.empty();
  }
  return edit;
}

Advice advise(const AdviceQuestion& question, const engine::Executor& executor,
              const Stages& stages) {
  const bool asks_rewire = question.rewire > 0 || question.rounds > 0 || question.spare > 0;
  const bool asks_worst = asks_rewire && question.source < 0 && question.target < 0;
  if (asks_rewire && (question.source < 0) != (question.target < 0)) {
    throw base::Error("rewire: expected a source and a target, or neither, got one of them");
  }
  if (question.depth || asks_rewire) {
    const std::string obstacle = why_no_deep_limit(question.graph);
    if (!obstacle.empty()) throw base::Error("no advice on depth and edges: " + obstacle);
  }
  if ((question.depth || asks_worst) && question.graph.num_nodes() > kMaxAllPairs) {
    throw base::Error(
        fmt::format("{} nodes have too many pairs to look at all (up to {} nodes); ask for the "
                    "edges of one pair",
                    question.graph.num_nodes(), kMaxAllPairs));
  }
  const auto stage = [&](const char* name) { return stages ? stages(name) : BlockProgress(); };
  Advice advice;
  if (question.depth) {
    advice.depth =
        advise_depth(question.graph, *question.depth, question.max_tau, executor, stage("depth"));
  }
  RewireQuestion about_edges{.graph = question.graph,
                             .tau = question.tau,
                             .source = question.source,
                             .target = question.target,
                             .order = question.order,
                             .count = question.rewire,
                             .weight = question.edit.weight};
  if (question.rewire > 0) advice.rewire = answer(about_edges, executor, stage("edges"));
  if (question.rounds > 0) {
    advice.rounds = rewire_in_rounds(about_edges, question.rounds, executor, stage("rounds"));
    advice.rounds_tau = question.tau;
  }
  if (question.spare > 0) {
    about_edges.count = question.spare;
    advice.spare = answer_removal(about_edges, executor, stage("spare edges"));
  }
  if (!question.edit.empty()) {
    advice.what_if = what_if(question.graph, graph::GsoKind::kSymNormalized, question.edit,
                             question.tau, question.source, question.target, executor);
  }
  return advice;
}

}  // namespace mpssm::analysis
