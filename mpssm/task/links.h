// SPDX-License-Identifier: MIT
// What a trained model of links says about pairs of nodes that people ask for.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "mpssm/data/dataset.h"
#include "mpssm/graph/operator_groups.h"
#include "mpssm/io/file.h"
#include "mpssm/nn/graph_module.h"

namespace mpssm::task {

struct LinkQuestion {
  std::optional<std::vector<data::NodePair>> pairs = {};  ///< none: the best that have no edge
  std::int64_t top = 100;                                 ///< as many of these
};

/// CSV: the pairs with a score in (0, 1). Messages run over all edges of the graph but those that
/// are asked about. Throws base::Error if there are too many nodes to try all pairs.
void write_links(const data::Dataset& dataset, const graph::GsoGroups& gso, nn::GraphModule& model,
                 const LinkQuestion& question, const io::Sink& sink);

}  // namespace mpssm::task
