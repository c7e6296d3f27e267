// SPDX-License-Identifier: MIT
#include "mpssm/report/influence_picture.h"

#include <algorithm>
#include <fmt/core.h>
#include <utility>
#include <vector>

#include "mpssm/report/graph_picture.h"
#include "mpssm/report/layout.h"
#include "mpssm/report/node_name.h"
#include "mpssm/report/text.h"

namespace mpssm::report {
namespace {

constexpr std::size_t kMaxNodes = 400;

/// Breadth-first, whichever way edges point: as many whole circles around the centre as fit into
/// kMaxNodes, or the first part of a circle too large for it. Then the other components.
std::vector<std::int32_t> nearest(const graph::Graph& graph, std::int64_t centre) {
  std::vector<std::vector<std::int32_t>> backwards;
  if (!graph.is_symmetric()) {
    backwards.resize(static_cast<std::size_t>(graph.num_nodes()));
    for (std::int64_t i = 0; i < graph.num_nodes(); ++i) {
      for (std::int64_t e = graph.row_ptr()[i]; e < graph.row_ptr()[i + 1]; ++e) {
        backwards[graph.col()[e]].push_back(static_cast<std::int32_t>(i));
      }
    }
  }
  std::vector<std::int32_t> nodes;
  std::vector<bool> seen(static_cast<std::size_t>(graph.num_nodes()));
  const auto add = [&](std::int64_t node) {
    if (seen[node] || nodes.size() == kMaxNodes) return;
    seen[node] = true;
    nodes.push_back(static_cast<std::int32_t>(node));
  };
  add(centre);
  std::size_t whole = 1;       // nodes of the circles that are complete
  std::size_t circle_end = 1;  // of the circle whose neighbours are being added
  for (std::size_t head = 0; head < nodes.size(); ++head) {
    if (head == circle_end) {
      circle_end = nodes.size();
      if (circle_end < kMaxNodes) whole = circle_end;
    }
    const std::int32_t node = nodes[head];
    for (std::int64_t e = graph.row_ptr()[node]; e < graph.row_ptr()[node + 1]; ++e) {
      add(graph.col()[e]);
    }
    if (!backwards.empty()) {
      for (const std::int32_t other : backwards[node]) add(other);
    }
  }
  if (static_cast<std::size_t>(graph.num_nodes()) <= kMaxNodes) {
    for (std::int64_t node = 0; node < graph.num_nodes(); ++node) add(node);
    return nodes;
  }
  constexpr std::size_t kEnough = 50;
  if (nodes.size() == kMaxNodes && whole >= kEnough) nodes.resize(whole);
  return nodes;
}

}  // namespace

std::string influence_svg(const data::BareGraph& bare, const InfluencePicture& picture) {
  const graph::Graph& graph = bare.graph;
  const std::vector<std::int32_t> nodes = nearest(graph, picture.centre);
  std::vector<std::int32_t> rank(static_cast<std::size_t>(graph.num_nodes()), -1);
  for (std::size_t n = 0; n < nodes.size(); ++n) rank[nodes[n]] = static_cast<std::int32_t>(n);

  GraphPicture drawn{.title = picture.title, .value_label = picture.value_label};
  std::vector<std::pair<std::int32_t, std::int32_t>> edges;
  std::vector<double> values;
  double least = 0.0;
  double largest = 0.0;
  for (const std::int32_t i : nodes) {
    for (std::int64_t e = graph.row_ptr()[i]; e < graph.row_ptr()[i + 1]; ++e) {
      const std::int32_t j = graph.col()[e];
      const bool once = j < i || !graph.is_symmetric();
      if (rank[j] >= 0 && j != i && once) edges.emplace_back(rank[i], rank[j]);
    }
    const double value = picture.value[i];
    values.push_back(value);
    if (value > 0.0) least = least == 0.0 ? value : std::min(least, value);
    largest = std::max(largest, value);
    drawn.label.push_back(node_name(bare, i) + fmt::format(": {:.3g}", value));
  }
  for (const std::int64_t node : {picture.centre, picture.also_marked}) {
    if (node >= 0 && rank[node] >= 0) drawn.marked.push_back(rank[node]);
  }
  if (nodes.size() < static_cast<std::size_t>(graph.num_nodes())) {
    drawn.title += fmt::format(" (the {} nearest nodes)", nodes.size());
  }
  const std::vector<Point> position = stress_layout(static_cast<std::int64_t>(nodes.size()), edges);
  drawn.edges = edges;
  drawn.position = position;
  drawn.value = values;
  constexpr double kWideRange = 30.0;
  drawn.log_scale = least > 0.0 && largest > kWideRange * least;
  return graph_svg(drawn);
}

}  // namespace mpssm::report
