// SPDX-License-Identifier: MIT
// The pictures that an answer can have.
#pragma once

#include <stdexcept>
#include <string>

namespace mpssm::report {

enum class PictureKind {
  kCurve,  ///< over tau, or over hops
  kMap,    ///< all pairs
  kGraph,  ///< the nodes, coloured
};

/// "curve", "map", "graph". Throws std::invalid_argument.
inline PictureKind picture_kind_from_name(const std::string& name) {
  if (name == "curve") return PictureKind::kCurve;
  if (name == "map") return PictureKind::kMap;
  if (name == "graph") return PictureKind::kGraph;
  throw std::invalid_argument("picture: expected curve, map or graph, got '" + name + "'");
}

}  // namespace mpssm::report
