// SPDX-License-Identifier: MIT
// Graph families: the regular shapes, the random ones, and the paper's bottleneck.
#pragma once

#include <cstdint>

#include "mpssm/graph/graph.h"

namespace mpssm::graph {

// All are undirected and unweighted. Random ones depend on their arguments and `seed` alone.
// Sizes that make no sense throw base::Error naming the function and the argument.

Graph make_path(std::int64_t num_nodes);
Graph make_ring(std::int64_t num_nodes);
/// Nodes numbered row by row, 4 neighbours.
Graph make_grid(std::int64_t rows, std::int64_t columns);
/// Node 0 is the centre.
Graph make_star(std::int64_t num_nodes);
Graph make_complete(std::int64_t num_nodes);
/// Tree whose degrees follow a power law (exponent 3): each node joins an earlier one with
/// probability proportional to its degree.
Graph make_power_law_tree(std::int64_t num_nodes, std::uint64_t seed);
/// Two paths of `rungs` nodes joined rung by rung.
Graph make_ladder(std::int64_t rungs);
/// Disjoint cliques.
Graph make_caveman(std::int64_t cliques, std::int64_t clique_size);
/// A path of `backbone` nodes; every other node hangs on a random backbone node.
Graph make_caterpillar(std::int64_t num_nodes, std::int64_t backbone, std::uint64_t seed);
/// A caterpillar whose legs (nodes backbone .. feet_start-1) carry the remaining nodes as feet.
Graph make_lobster(std::int64_t num_nodes, std::int64_t backbone, std::int64_t feet_start,
                   std::uint64_t seed);
/// Each pair independently with probability p. Cost: proportional to the edges.
Graph make_erdos_renyi(std::int64_t num_nodes, double probability, std::uint64_t seed);
/// Each new node attaches to `attachments` distinct earlier ones, preferring high degree.
Graph make_barabasi_albert(std::int64_t num_nodes, std::int64_t attachments, std::uint64_t seed);
/// Simple graph in which each node has `degree` neighbours.
Graph make_random_regular(std::int64_t num_nodes, std::int64_t degree, std::uint64_t seed);
/// Connected: a uniform random spanning structure (random recursive tree on shuffled nodes) plus
/// distinct random pairs up to `num_edges`.
Graph make_random_connected(std::int64_t num_nodes, std::int64_t num_edges, std::uint64_t seed);
/// The paper's bottleneck: `cliques` cliques of `clique_size`, consecutive ones joined through one
/// bridge node each; the two bridges at a clique attach to different members. Clique nodes come
/// first (clique by clique), then the bridges in order.
Graph make_clique_chain(std::int64_t cliques, std::int64_t clique_size);
/// Minesweeper board: grid with 8 neighbours, nodes numbered row by row.
Graph make_board(std::int64_t rows, std::int64_t columns);

}  // namespace mpssm::graph
