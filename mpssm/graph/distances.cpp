// SPDX-License-Identifier: MIT
// Breadth-first search along the edges, and union-find for components.
#include "mpssm/graph/distances.h"

#include <algorithm>
#include <fmt/core.h>
#include <numeric>
#include <stdexcept>
#include <string>

#include "mpssm/graph/csr.h"

namespace mpssm::graph {
namespace {

// Breadth-first search with buffers kept between sources. Rows list who sends to a node, so that
// walking along the edges needs the transpose, except where both are the same.
class Search {
 public:
  explicit Search(const Graph& graph)
      : row_ptr_(graph.row_ptr()), col_(graph.col()), distance_(graph.num_nodes()) {
    order_.reserve(graph.num_nodes());
    if (graph.is_symmetric()) return;
    outgoing_ = transpose({{row_ptr_.begin(), row_ptr_.end()},
                           {col_.begin(), col_.end()},
                           {graph.weight().begin(), graph.weight().end()}});
    row_ptr_ = outgoing_.row_ptr;
    col_ = outgoing_.col;
  }

  const std::vector<std::int32_t>& run(std::int64_t source) {
    std::fill(distance_.begin(), distance_.end(), kUnreachable);
    const auto neighbours = [this](std::int32_t node, const auto& visit) {
      for (std::int64_t e = row_ptr_[node]; e < row_ptr_[node + 1]; ++e) visit(col_[e]);
    };
    breadth_first(source, neighbours, distance_, order_);
    return distance_;
  }

  std::int32_t eccentricity(std::int64_t source) {
    run(source);
    return distance_[order_.back()];  // the node reached last is one of the farthest
  }

 private:
  std::span<const std::int64_t> row_ptr_;
  std::span<const std::int32_t> col_;
  Csr outgoing_;
  std::vector<std::int32_t> distance_;
  std::vector<std::int32_t> order_;
};

std::int32_t find_root(std::vector<std::int32_t>& parent, std::int32_t node) {
  while (parent[node] != node) {
    parent[node] = parent[parent[node]];
    node = parent[node];
  }
  return node;
}

}  // namespace

std::vector<std::int32_t> distances_from(const Graph& graph, std::int64_t source) {
  if (source < 0 || source >= graph.num_nodes()) {
    throw std::out_of_range(
        fmt::format("distances_from: node {} out of range [0, {})", source, graph.num_nodes()));
  }
  return Search(graph).run(source);
}

std::vector<std::int32_t> eccentricities(const Graph& graph) {
  Search search(graph);
  std::vector<std::int32_t> result(graph.num_nodes());
  for (std::int64_t i = 0; i < graph.num_nodes(); ++i) result[i] = search.eccentricity(i);
  return result;
}

std::int64_t diameter(const Graph& graph) {
  const std::vector<std::int32_t> all = eccentricities(graph);
  return all.empty() ? 0 : *std::max_element(all.begin(), all.end());
}

Components components(const Graph& graph) {
  std::vector<std::int32_t> parent(graph.num_nodes());
  std::iota(parent.begin(), parent.end(), 0);
  for (std::int64_t i = 0; i < graph.num_nodes(); ++i) {
    for (std::int64_t e = graph.row_ptr()[i]; e < graph.row_ptr()[i + 1]; ++e) {
      const std::int32_t a = find_root(parent, static_cast<std::int32_t>(i));
      const std::int32_t b = find_root(parent, graph.col()[e]);
      // The smaller index stays root, hence components are numbered by first appearance below.
      parent[std::max(a, b)] = std::min(a, b);
    }
  }
  Components result;
  result.of_node.resize(graph.num_nodes());
  for (std::int64_t i = 0; i < graph.num_nodes(); ++i) {
    const std::int32_t root = find_root(parent, static_cast<std::int32_t>(i));
    result.of_node[i] =
        root == i ? static_cast<std::int32_t>(result.count++) : result.of_node[root];
  }
  return result;
}

bool is_connected(const Graph& graph) { return components(graph).count == 1; }

}  // namespace mpssm::graph
