// SPDX-License-Identifier: MIT
// What is known of edges, as numbers of the nodes that they join.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "mpssm/data/dataset.h"

namespace mpssm::data {

/// How the columns of a table of edges become numbers: words, and numbers of at most 16 whole
/// values, as categories; other numbers by mean and deviation. Looks at the rows that `counts`
/// names.
std::vector<Column> fit_edge_columns(const EdgeTable& table,
                                     const std::function<bool(std::size_t)>& counts);
Column fit_edge_column(const EdgeColumn& column, const std::function<bool(std::size_t)>& counts);

/// Whether a row of the table is of a graph that may be learned from. The data must outlive it.
std::function<bool(std::size_t)> edges_of_training(const GraphsData& data);

/// The rows whose edge is not listed the other way.
std::vector<bool> listed_one_way(const EdgeTable& table);

/// Numbers of an edge that these columns make.
std::int64_t edge_features(std::span<const Column> columns);

/// [nodes, edge_features(columns)]: of each node the sum over the edges that come in. An edge that
/// is listed one way and counts `both_ways` comes in at both ends. Values that no column knows add
/// nothing. A linear map of the sum is the sum of the linear maps: it is what an encoder of edges
/// whose results are added up at the nodes gives. Throws base::Error if a column is not there.
Matrix incident_sums(const EdgeTable& table, std::span<const Column> columns,
                     std::int64_t num_nodes, bool both_ways);

/// Packed graphs whose file has 'bond_feat' [edges, columns], codes of one byte: these become
/// columns of edges "bond_0", .... Not read by load(), as they take much memory and few ask for
/// them. All other data, and those that have columns of edges, are left alone. Throws base::Error.
void read_bonds(Dataset& dataset);

}  // namespace mpssm::data
