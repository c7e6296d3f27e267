// SPDX-License-Identifier: MIT
// The pictures that an answer can have, and how files of ours are known.
#pragma once

#include <stdexcept>
#include <string>

#include "mpssm/io/file.h"

namespace mpssm::report {

/// Every picture that we write begins so.
inline constexpr io::FileMark kPictureMark = {.bytes = "<svg data-by=\"mpssm\"",
                                              .kind = "a picture by mpssm"};

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
