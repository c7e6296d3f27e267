// SPDX-License-Identifier: MIT
#include "mpssm/data/changing_graph.h"

#include <algorithm>
#include <fmt/core.h>
#include <map>
#include <utility>

#include "mpssm/data/edges.h"

namespace mpssm::data {

ChangingGraph changing_graph(const std::string& where, const graph::CompactEdgeList& edges,
                             std::span<const double> times, std::span<const double> times_of_steps,
                             std::optional<EdgeUse> use) {
  std::map<double, graph::CompactEdgeList> at_time;
  for (std::size_t e = 0; e < edges.src.size(); ++e) {
    graph::CompactEdgeList& graph = at_time[times[e]];
    graph.num_nodes = edges.num_nodes;
    graph.src.push_back(edges.src[e]);
    graph.dst.push_back(edges.dst[e]);
    if (!edges.weight.empty()) graph.weight.push_back(edges.weight[e]);
  }
  ChangingGraph changing;
  if (at_time.empty()) return changing;
  auto next = at_time.begin();
  for (const double time : times_of_steps) {
    auto current = next;
    while (next != at_time.end() && next->first <= time) current = next++;
    if (current == next && !changing.graphs.empty()) {
      // Nothing new: the graph of the step before.
      changing.of_step.push_back(changing.of_step.back());
      continue;
    }
    // Before the first time, the first graph, which stays when its time comes.
    if (current == next) ++next;
    changing.of_step.push_back(static_cast<std::int32_t>(changing.graphs.size()));
    changing.graphs.push_back(
        make_series_graph(where, with_mean_weights(std::move(current->second)), Merge::kMean, use));
  }
  return changing;
}

graph::CompactEdgeList with_mean_weights(graph::CompactEdgeList edges) {
  if (edges.weight.empty()) return edges;
  std::map<std::pair<std::int32_t, std::int32_t>, std::pair<double, double>> sums;
  for (std::size_t e = 0; e < edges.src.size(); ++e) {
    auto& [sum, count] = sums[{edges.src[e], edges.dst[e]}];
    sum += edges.weight[e];
    count += 1.0;
  }
  graph::CompactEdgeList merged{.num_nodes = edges.num_nodes};
  for (const auto& [ends, weight] : sums) {
    merged.src.push_back(ends.first);
    merged.dst.push_back(ends.second);
    merged.weight.push_back(weight.first / weight.second);
  }
  return merged;
}

std::vector<TimedEdge> timed_edges(const ChangingGraph& changing) {
  const bool directed = is_directed(changing);
  std::vector<TimedEdge> edges;
  for (std::size_t t = 0; t < changing.of_step.size(); ++t) {
    if (t > 0 && changing.of_step[t] == changing.of_step[t - 1]) continue;
    const graph::Graph& graph = changing.graphs[static_cast<std::size_t>(changing.of_step[t])];
    for (std::int64_t i = 0; i < graph.num_nodes(); ++i) {
      for (std::int64_t e = graph.row_ptr()[i]; e < graph.row_ptr()[i + 1]; ++e) {
        if (!directed && graph.col()[e] > i) break;
        edges.push_back({graph.col()[e], static_cast<std::int32_t>(i), graph.weight()[e],
                         static_cast<std::int64_t>(t)});
      }
    }
  }
  return edges;
}

bool is_directed(const ChangingGraph& changing) {
  return !std::ranges::all_of(changing.graphs, &graph::Graph::is_symmetric);
}

std::string note_of_changing_graph(const ChangingGraph& changing) {
  return fmt::format(
      "edges change over time, {} graphs in {} steps: the model has one graph for all times, of "
      "all edges that are there at any, unless data.graph_over_time=true",
      changing.graphs.size(), changing.of_step.size());
}

bool is_weighted(const ChangingGraph& changing) {
  return std::any_of(changing.graphs.begin(), changing.graphs.end(),
                     [](const graph::Graph& graph) { return graph.is_weighted(); });
}

}  // namespace mpssm::data
