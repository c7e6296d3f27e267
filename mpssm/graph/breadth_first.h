// SPDX-License-Identifier: MIT
// Breadth-first search, for whatever says what the neighbours of a node are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mpssm::graph {

inline constexpr std::int32_t kUnreachable = -1;

/// Puts the nodes that can be reached from `start` into `order`, nearest first, and the hops to
/// them into `hops`. Nodes whose hops are not kUnreachable count as visited, so that calls with the
/// same `hops` find one component after the other. neighbours(node, visit) calls visit(other).
template <typename Neighbours>
void breadth_first(std::int64_t start, const Neighbours& neighbours, std::span<std::int32_t> hops,
                   std::vector<std::int32_t>& order) {
  order.assign(1, static_cast<std::int32_t>(start));
  hops[start] = 0;
  for (std::size_t head = 0; head < order.size(); ++head) {
    const std::int32_t node = order[head];
    neighbours(node, [&](std::int32_t other) {
      if (hops[other] != kUnreachable) return;
      hops[other] = hops[node] + 1;
      order.push_back(other);
    });
  }
}

}  // namespace mpssm::graph
