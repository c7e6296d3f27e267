// SPDX-License-Identifier: MIT
// The neighbourhood of a node, every node coloured by how much it matters there.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "mpssm/data/bare_graph.h"

namespace mpssm::report {

struct InfluencePicture {
  std::string title;
  std::string value_label;
  std::int64_t centre = 0;
  std::int64_t also_marked = -1;
  std::span<const double> value;  ///< [N]
};

/// SVG of the whole graph, or of the nodes nearest to `centre` if there are too many to tell apart.
std::string influence_svg(const data::BareGraph& graph, const InfluencePicture& picture);

}  // namespace mpssm::report
