// SPDX-License-Identifier: MIT
// Bridges by low links: a tree edge is one if nothing below it leads above it.
#include "mpssm/graph/bridges.h"

#include <algorithm>
#include <fmt/core.h>
#include <stdexcept>
#include <string>

namespace mpssm::graph {
namespace {

constexpr std::int32_t kNone = -1;

void check_node(std::int64_t node, std::size_t num_nodes) {
  if (node >= 0 && node < static_cast<std::int64_t>(num_nodes)) return;
  throw std::out_of_range(
      fmt::format("Bridges: expected a node in [0, {}), got {}", num_nodes, node));
}

}  // namespace

Bridges::Bridges(const Graph& graph) {
  if (!graph.is_symmetric()) {
    throw std::invalid_argument("Bridges: expected an undirected graph, got a directed one");
  }
  find_bridges(graph, visit(graph));
}

std::vector<std::int32_t> Bridges::visit(const Graph& graph) {
  const auto num_nodes = static_cast<std::int32_t>(graph.num_nodes());
  parent_.assign(num_nodes, kNone);
  entry_.assign(num_nodes, kNone);
  root_.resize(num_nodes);
  std::vector<std::int32_t> order;
  order.reserve(num_nodes);
  std::vector<std::int64_t> next(graph.row_ptr().begin(), graph.row_ptr().end() - 1);
  const auto enter = [&](std::int32_t node, std::int32_t root) {
    entry_[node] = static_cast<std::int32_t>(order.size());
    root_[node] = root;
    order.push_back(node);
  };
  for (std::int32_t root = 0; root < num_nodes; ++root) {
    if (entry_[root] != kNone) continue;
    enter(root, root);
    std::int32_t node = root;
    while (node != kNone) {
      if (next[node] == graph.row_ptr()[node + 1]) {
        node = parent_[node];
        continue;
      }
      const std::int32_t neighbour = graph.col()[next[node]++];
      if (entry_[neighbour] != kNone) continue;
      parent_[neighbour] = node;
      enter(neighbour, root);
      node = neighbour;
    }
  }
  return order;
}

void Bridges::find_bridges(const Graph& graph, std::span<const std::int32_t> order) {
  // The earliest node reached from a node or from below it, tree edges upwards left out.
  std::vector<std::int32_t> low = entry_;
  subtree_.assign(order.size(), 1);
  for (auto at = order.rbegin(); at != order.rend(); ++at) {
    const std::int32_t node = *at;
    for (std::int64_t e = graph.row_ptr()[node]; e < graph.row_ptr()[node + 1]; ++e) {
      const std::int32_t neighbour = graph.col()[e];
      if (neighbour != parent_[node]) low[node] = std::min(low[node], entry_[neighbour]);
    }
    const std::int32_t above = parent_[node];
    if (above == kNone) continue;
    low[above] = std::min(low[above], low[node]);
    subtree_[above] += subtree_[node];
  }
  head_.resize(order.size());
  for (const std::int32_t node : order) {
    const bool is_head = low[node] == entry_[node];
    head_[node] = is_head ? node : head_[parent_[node]];
    if (is_head && parent_[node] != kNone) all_.push_back(bridge_above(node));
  }
}

Bridge Bridges::bridge_above(std::int32_t head) const {
  return {.a = parent_[head], .b = head, .far_side = subtree_[head]};
}

std::vector<Bridge> Bridges::separating(std::int64_t i, std::int64_t j) const {
  check_node(i, entry_.size());
  check_node(j, entry_.size());
  if (root_[i] != root_[j]) return {};
  const std::int64_t num_connected = subtree_[root_[i]];
  std::vector<Bridge> from_i;
  std::vector<Bridge> from_j;
  std::int32_t near = head_[i];
  std::int32_t far = head_[j];
  // Of two different heads the one seen later is not above the other: its bridge is on the way.
  while (near != far) {
    if (entry_[near] > entry_[far]) {
      const Bridge down = bridge_above(near);
      from_i.push_back({.a = down.b, .b = down.a, .far_side = num_connected - down.far_side});
      near = head_[down.a];
    } else {
      from_j.push_back(bridge_above(far));
      far = head_[parent_[far]];
    }
  }
  from_i.insert(from_i.end(), from_j.rbegin(), from_j.rend());
  return from_i;
}

}  // namespace mpssm::graph
