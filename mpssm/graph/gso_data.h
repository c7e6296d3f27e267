// SPDX-License-Identifier: MIT
// Private to graph/: what a Gso shares between its copies.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "mpssm/graph/csr.h"
#include "mpssm/graph/gso.h"
#include "mpssm/graph/spectrum.h"

namespace mpssm::graph {

struct Gso::Data {
  Csr rows;
  std::vector<float> value_float;
  // Only what differs from `rows` is kept: no pattern if it is symmetric, no values if they are.
  Csr transposed;
  std::vector<float> transposed_float;
  bool has_symmetric_pattern = true;
  bool is_symmetric = true;
  std::vector<std::int64_t> graph_ptr = {0, 0};
  GsoKind kind = GsoKind::kCustom;

  // Filled by eigen_basis() at its first call.
  mutable std::once_flag eigen_once;
  mutable std::unique_ptr<const EigenBasis> eigen_basis;
};

}  // namespace mpssm::graph
