// SPDX-License-Identifier: MIT
// Private to task/: what the outputs of a network for each node say about pairs of nodes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "mpssm/task/problem.h"

namespace mpssm::task {

/// Outputs for each node that a score needs.
std::int64_t link_outputs(bool directed);

/// The features, and some of plus and minus one that are drawn once for each node: they tell nodes
/// apart that look the same, and after a few hops products of them count the walks that two nodes
/// share.
torch::Tensor marked_features(const data::NodeData& data);

/// The score of a pair is the product <left of src, right of dst>. Undirected it is
/// <a_u, a_v> - <b_u, b_v> + c_u + c_v, a form that can ask for likeness as well as for difference;
/// directed <a_u, b_v> + c_u + d_v.
struct LinkEnds {
  torch::Tensor left = {};
  torch::Tensor right = {};
};
LinkEnds link_ends(const torch::Tensor& output, bool directed);

/// [pairs]; above 0: rather an edge than one of as many pairs without.
torch::Tensor link_scores(const LinkEnds& ends, std::span<const data::NodePair> pairs);
float link_share(float score);  ///< in (0, 1)

/// "src,dst" by their names.
std::string pair_cells(const data::NodeData& data, data::NodePair pair);

/// Counts of what two nodes share in the training graph, and the likeness of their features, as
/// scores of the test pairs.
std::vector<Reference> link_references(const data::NodeData& data);

}  // namespace mpssm::task
