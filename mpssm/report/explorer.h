// SPDX-License-Identifier: MIT
// A graph to look into, on a page: nodes coloured by what is known of them, or by how much of each
// reaches the node that is clicked. The page computes that itself, from the operator and norms
// here.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "mpssm/graph/gso.h"
#include "mpssm/report/layout.h"

namespace mpssm::report {

/// Something known of every node.
struct NodeColour {
  std::string name = {};
  std::vector<double> value = {};  ///< [N]; NaN: not known; a class number if there are classes
  std::vector<std::string> classes = {};  ///< empty: `value` is a number
};

/// ||W^tau|| of one block (or |w|^tau of a bare graph), for tau = 0, 1, ...
struct HopNorms {
  std::string name = {};
  std::vector<double> norm = {};
};

struct Explorer {
  graph::Gso gso = {};
  std::vector<std::string> node_ids = {};  ///< [N]; empty: 0, 1, 2, ...
  std::vector<NodeColour> colours = {};
  std::vector<HopNorms> blocks = {};  ///< at least one, all of one length
  std::vector<Point> position = {};   ///< [N]; empty: laid out here if there are few enough
  std::int64_t target = 0;            ///< the node that is chosen at first
  std::int64_t source = -1;           ///< -1: none
  std::int64_t hops = 0;              ///< at first

  using Edge = std::pair<std::int32_t, std::int32_t>;
  struct Pair {
    std::int64_t source = -1;
    std::int64_t target = -1;
  };
  std::vector<Pair> worst = {};    ///< to jump to, worst first
  std::int64_t worst_hops = 0;     ///< in so many hops
  std::vector<Edge> bridges = {};  ///< marked: the only way between their ends
  std::vector<Edge> advised = {};  ///< edges that are not there, drawn apart
  std::vector<Edge> harmful = {};  ///< edges that are, drawn apart
  /// [N] D_i, for the limit sqrt(D_i D_j) / vol of a pair; empty: it is not known.
  std::vector<double> degree = {};
  double lambda_star = 0.0;  ///< for bounds about that limit; 0: none
};

/// Bytes that the graph may take on a page: a larger one is cut down to the nodes around `target`.
inline constexpr std::int64_t kMaxExplorerBytes = 900'000;

/// The nodes that fit, ascending: all of them, or those nearest to the target.
std::vector<std::int32_t> explored_nodes(const Explorer& explorer);

/// The controls, the drawing and the data, for a page that has explorer.js. Throws
/// std::invalid_argument if sizes differ.
std::string explorer_html(const Explorer& explorer);

}  // namespace mpssm::report
