// SPDX-License-Identifier: MIT
// Operators per group of channels as settings name them: "sym_normalized", or
// "random_walk:2,random_walk_reversed:2,identity:1" with shares of the channels, or
// "sym_normalized,random_walk(bond=double)" with an operator of some of the edges.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "mpssm/graph/operators.h"

namespace mpssm::graph {

struct GsoShare {
  GsoKind kind = GsoKind::kSymNormalized;
  std::int64_t share = 1;
  /// Of the edges that have `value` in this column of their table; empty: of all edges.
  std::string column = {};
  std::string value = {};  ///< empty: a group for each value, see data/edge_operators.h

  bool operator==(const GsoShare&) const = default;
};

/// Kinds of operators and their shares of the channels; one or more.
struct GsoGroups {
  std::vector<GsoShare> groups = {GsoShare{}};
  std::int64_t adaptive_rank = 10;  ///< of kAdaptive, at most the number of nodes; no part of texts

  GsoGroups() = default;
  GsoGroups(GsoKind kind) : groups{{kind}} {}

  bool operator==(const GsoGroups& other) const {
    return groups == other.groups && (adaptive_rank == other.adaptive_rank || !is_adaptive());
  }
  bool is_adaptive() const;  ///< has a group of kAdaptive
  bool is_of_edges() const;  ///< has a group of some of the edges
  bool is_single() const { return groups.size() == 1; }
  /// Of groups of channels; empty if there is one operator for all.
  std::vector<std::int64_t> shares() const;
};

/// Kinds with commas between them, edges in parentheses, shares other than 1 behind a colon.
std::string to_string(const GsoGroups& groups);
/// Names of the kinds that groups may have, "a, b, c".
std::string gso_group_names();
/// Throws std::invalid_argument that says what is wrong with the text.
GsoGroups gso_groups_from_text(std::string_view text);

/// The graph that has those edges alone which a group names by column and value.
using EdgesOfGroup = std::function<Graph(const GsoShare&)>;

/// The operator of each group: make_gso(), or of low rank. Factors of kAdaptive are zero until a
/// call gives others. Throws std::invalid_argument if a group has some of the edges and nobody
/// says which.
Operators make_operators(const Graph& graph, const GsoGroups& groups,
                         const EdgesOfGroup& edges_of = {});

/// An entry 1 wherever one of the groups has one that is not zero: who hears whom along edges.
/// Groups of low rank, by which every node hears its whole graph, are left out.
Gso united(const Operators& operators);

}  // namespace mpssm::graph
