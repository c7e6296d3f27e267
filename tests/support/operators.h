// SPDX-License-Identifier: MIT
// Small operators that between them have every awkward shape.
#pragma once

#include <string>
#include <vector>

#include "mpssm/graph/generators.h"
#include "mpssm/graph/gso.h"

namespace mpssm::testing {

struct NamedGso {
  std::string name;
  graph::Gso gso;
};

inline std::vector<NamedGso> awkward_operators() {
  using graph::Direction;
  using graph::Graph;
  std::vector<NamedGso> all;
  all.push_back({"no nodes", graph::make_gso(Graph{})});
  all.push_back({"one node", graph::make_gso(Graph::from_edges({.num_nodes = 1}))});
  all.push_back({"one node, no entry", graph::make_gso(Graph::from_edges({.num_nodes = 1}),
                                                       {.kind = graph::GsoKind::kAdjacency})});
  all.push_back({"connected", graph::make_gso(graph::make_random_connected(13, 24, 3))});
  all.push_back({"disconnected", graph::make_gso(graph::make_caveman(3, 4))});
  all.push_back({"directed", graph::make_gso(Graph::from_edges({.num_nodes = 6,
                                                                .src = {0, 1, 2, 3, 4, 0, 2},
                                                                .dst = {1, 2, 3, 4, 5, 3, 0}},
                                                               Direction::kDirected),
                                             {.kind = graph::GsoKind::kRandomWalk})});
  all.push_back({"weighted", graph::make_gso(Graph::from_edges({.num_nodes = 5,
                                                                .src = {0, 1, 2, 3, 0},
                                                                .dst = {1, 2, 3, 4, 2},
                                                                .weight = {0.5, 2, 0.1, 3, 1}}))});
  all.push_back(
      {"self-looped", graph::make_gso(Graph::from_edges(
                          {.num_nodes = 4, .src = {0, 0, 1, 3, 2}, .dst = {0, 1, 2, 3, 3}}))});
  const std::vector<Graph> parts = {graph::make_path(3), graph::make_star(5),
                                    Graph::from_edges({.num_nodes = 1}), graph::make_ring(4)};
  all.push_back({"batched", graph::make_gso(graph::make_batch(parts))});
  return all;
}

}  // namespace mpssm::testing
