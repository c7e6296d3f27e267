// SPDX-License-Identifier: MIT
#include "mpssm/analysis/normalised_graph.h"

#include <cmath>
#include <cstdint>
#include <vector>

namespace mpssm::analysis {
namespace {

/// What degrees may be off by, relatively: far above rounding, far below any other operator.
constexpr double kSameDegree = 1e-9;

/// Calls visit(row, column, value) for each entry that is not 0.
template <typename Visit>
void for_each_entry(const graph::Gso& gso, const Visit& visit) {
  const auto values = gso.values<double>();
  for (std::int64_t i = 0; i < gso.num_nodes(); ++i) {
    for (std::int64_t e = gso.row_ptr()[i]; e < gso.row_ptr()[i + 1]; ++e) {
      if (values[e] != 0.0) visit(i, gso.col()[e], values[e]);
    }
  }
}

}  // namespace

std::optional<graph::Graph> normalised_graph(const graph::Gso& gso) {
  if (!gso.is_symmetric()) return {};
  const auto nodes = static_cast<std::size_t>(gso.num_nodes());
  std::vector<double> root(nodes, 0.0);  // of D
  bool is_positive = true;
  for_each_entry(gso, [&](std::int64_t i, std::int64_t j, double value) {
    is_positive = is_positive && value > 0.0;
    if (i == j && value > 0.0) root[i] = 1.0 / std::sqrt(value);
  });
  if (!is_positive) return {};

  graph::EdgeList edges{.num_nodes = gso.num_nodes()};
  std::vector<double> degree(nodes, 0.0);
  for_each_entry(gso, [&](std::int64_t i, std::int64_t j, double value) {
    const double weight = i == j ? 1.0 : value * (root[i] * root[j]);
    degree[i] += weight;
    edges.src.push_back(j);
    edges.dst.push_back(i);
    edges.weight.push_back(weight);
  });
  for (std::size_t i = 0; i < nodes; ++i) {
    const double wanted = root[i] * root[i];
    if (!(std::abs(degree[i] - wanted) <= kSameDegree * wanted)) return {};
    if (wanted == 0.0) return {};  // without a loop
  }
  return graph::Graph::from_edges(edges, graph::Direction::kDirected);
}

graph::Graph graph_of_entries(const graph::Gso& gso) {
  graph::EdgeList edges{.num_nodes = gso.num_nodes()};
  for_each_entry(gso, [&](std::int64_t i, std::int64_t j, double value) {
    edges.src.push_back(j);
    edges.dst.push_back(i);
    edges.weight.push_back(value);
  });
  return graph::Graph::from_edges(edges, graph::Direction::kDirected);
}

}  // namespace mpssm::analysis
