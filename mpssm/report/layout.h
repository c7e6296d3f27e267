// SPDX-License-Identifier: MIT
// Places for the nodes of a graph: distances in the plane follow the hops between nodes.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace mpssm::report {

struct Point {
  double x = 0.0;
  double y = 0.0;
};

inline constexpr std::int64_t kMaxLayoutNodes = 2000;

/// Stress majorisation: the sum over pairs of ((distance - hops) / hops)^2 is lowered step by step.
/// Edges are taken as undirected; loops and repeated ones change nothing. Components stand in a
/// row, each turned into its smallest upright box. The longer side fills the unit square, the
/// shorter one is centred. The same arguments give the same places.
/// Memory O(N^2); a second or two for 500 nodes, some more for kMaxLayoutNodes.
/// Throws std::invalid_argument for more nodes, or an edge to a node that does not exist.
std::vector<Point> stress_layout(std::int64_t num_nodes,
                                 std::span<const std::pair<std::int32_t, std::int32_t>> edges);

}  // namespace mpssm::report
