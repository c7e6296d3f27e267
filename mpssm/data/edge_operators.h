// SPDX-License-Identifier: MIT
// Operators of edges that have the same value in a column of their table: the bonds of one type.
#pragma once

#include "mpssm/data/dataset.h"
#include "mpssm/graph/operator_groups.h"

namespace mpssm::data {

const EdgeTable& edge_table_of(const Dataset& dataset);

/// The entries of the graph whose edge is listed with this value, a word or a number as text. An
/// edge that is listed one way counts both ways if the graph is symmetric; one that is listed with
/// several values is there for each of them; what is not in the graph is left out. Throws
/// base::Error if there is no such column.
graph::Graph edges_with(const graph::Graph& graph, const EdgeTable& table,
                        const std::string& column, const std::string& value);

/// graph::make_operators(), groups of some of the edges by edges_with().
graph::Operators make_operators(const graph::Graph& graph, const graph::GsoGroups& groups,
                                const EdgeTable& table);

/// Groups that name a column alone become one for each of its values: words in the order of the
/// table, or at most 16 whole numbers; of many graphs those of the training part. Throws
/// base::Error at model.gso if there is no such column, it holds other numbers or too many values,
/// or all that is left is one operator of some of the edges.
graph::GsoGroups with_values_of_edges(const graph::GsoGroups& groups, const Dataset& dataset);

}  // namespace mpssm::data
