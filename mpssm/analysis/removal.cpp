// SPDX-License-Identifier: MIT
#include "mpssm/analysis/removal.h"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

#include "mpssm/analysis/deep_limit.h"
#include "mpssm/graph/bridges.h"

namespace mpssm::analysis {

RemovalAnswer answer_removal(const RewireQuestion& question, const engine::Executor& executor,
                             const BlockProgress& progress) {
  const graph::Graph& graph = question.graph;
  const std::string obstacle = why_no_deep_limit(graph);
  if (!obstacle.empty()) throw std::invalid_argument("removal: " + obstacle);
  const graph::Gso gso = graph::make_gso(graph);
  const std::vector<double> degree = degrees_with_loops(graph);
  RemovalAnswer answer{.tau = question.tau, .source = question.source, .target = question.target};
  if (answer.source < 0 || answer.target < 0) {
    std::tie(answer.source, answer.target) = worst_pair(question, gso, executor, progress);
  }
  const PairDerivative derivative(gso, degree, answer.source, answer.target, question.tau,
                                  executor);
  answer.value = derivative.value();
  std::set<std::pair<std::int32_t, std::int32_t>> bridges;
  const graph::Bridges found(graph);
  for (const graph::Bridge& bridge : found.all()) {
    bridges.insert(std::minmax(bridge.a, bridge.b));
  }
  answer.bridges = std::ssize(bridges);
  for (std::int64_t i = 0; i < graph.num_nodes(); ++i) {
    for (std::int64_t e = graph.row_ptr()[i]; e < graph.row_ptr()[i + 1]; ++e) {
      const std::int32_t u = graph.col()[e];
      const auto v = static_cast<std::int32_t>(i);
      if (u >= v || bridges.contains({u, v})) continue;
      answer.edges.push_back({u, v, graph.weight()[e], derivative.slope(u, v)});
    }
  }
  answer.candidates = std::ssize(answer.edges);
  std::stable_sort(answer.edges.begin(), answer.edges.end(),
                   [](const SpareEdge& a, const SpareEdge& b) {
                     return a.weight * a.slope < b.weight * b.slope;
                   });
  answer.edges.resize(
      std::min<std::size_t>(answer.edges.size(), std::max(question.confirm, question.count)));
  for (SpareEdge& edge : answer.edges) {
    // To take an edge is to add one of the opposite weight: the same entries of S change.
    edge.value = value_with_edge(gso, degree, answer.source, answer.target, question.tau,
                                 {edge.u, edge.v, edge.slope}, -edge.weight, executor);
    ++answer.confirmed;
  }
  std::stable_sort(answer.edges.begin(), answer.edges.end(),
                   [](const SpareEdge& a, const SpareEdge& b) { return a.value > b.value; });
  answer.edges.resize(std::min<std::size_t>(answer.edges.size(), question.count));
  return answer;
}

}  // namespace mpssm::analysis
