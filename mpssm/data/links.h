// SPDX-License-Identifier: MIT
// Edges as what is to be predicted: held out of a graph, beside pairs that have none.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "mpssm/base/random.h"
#include "mpssm/data/dataset.h"
#include "mpssm/data/load.h"

namespace mpssm::data {

/// The edges of a graph without its loops, those of an undirected one once; sorted.
std::vector<NodePair> pairs_of(const graph::Graph& graph);

/// O(log degree). Of an undirected graph the order of the two does not matter.
bool has_edge(const graph::Graph& graph, NodePair pair);

/// The graph without these edges; `pairs` is sorted, and those that are no edges do not matter.
graph::Graph without_edges(const graph::Graph& graph, std::span<const NodePair> pairs);

/// A pair of different nodes without an edge, all of them equally likely; of an undirected graph
/// (`directed` false) src < dst. There must be such a pair.
NodePair draw_other(const graph::Graph& graph, bool directed, base::Random& random);

/// The pairs that a table names by 'src' and 'dst', in its order and as they stand there. Throws
/// base::Error naming the cell that is no node.
std::vector<NodePair> read_pairs(const std::filesystem::path& path, const NodeData& data);

/// Takes edges out of `data.graph`: a tenth each for val and test, and as many pairs without an
/// edge, by data.split_seed, or those of `options.links`. Of data for a trained model, a tenth for
/// test to measure it, nothing to predict. Throws base::Error if there are too few.
void hold_out_links(const std::string& where, const LoadOptions& options, Dataset& dataset,
                    NodeData& data);

}  // namespace mpssm::data
