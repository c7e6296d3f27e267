// SPDX-License-Identifier: MIT
// A graph as an SVG picture: nodes at given places, coloured by a value.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "mpssm/report/layout.h"

namespace mpssm::report {

struct GraphPicture {
  std::string title;
  std::string value_label;  ///< of the colour bar
  std::span<const std::pair<std::int32_t, std::int32_t>> edges = {};
  std::span<const Point> position = {};   ///< [nodes], y upwards; see stress_layout()
  std::span<const double> value = {};     ///< [nodes]
  std::vector<std::int32_t> marked = {};  ///< drawn with a ring
  std::vector<std::string> label = {};    ///< [nodes] or empty: tooltips, text at marked nodes
  bool log_scale = false;
};

/// Fits the places into a picture about 850 units wide, aspect kept. Nodes are smaller if there are
/// many. NaN and infinite values have a colour of their own, and so have values that are not
/// positive on a logarithmic scale; the legend names them where they occur. Throws
/// std::invalid_argument if sizes differ, a place is not finite, or an edge or mark names a node
/// that does not exist.
std::string graph_svg(const GraphPicture& picture);

}  // namespace mpssm::report
