// SPDX-License-Identifier: MIT
// Which edge a pair of nodes misses least: by the exact derivative of A^tau in the weights of the
// edges that are there, and confirmed by recomputation.
#pragma once

#include <cstdint>
#include <vector>

#include "mpssm/analysis/rewire.h"
#include "mpssm/engine/executor.h"

namespace mpssm::analysis {

struct SpareEdge {
  std::int32_t u = 0;
  std::int32_t v = 0;
  double weight = 1.0;
  double slope = 0.0;  ///< derivative of (S^tau)_ij in its weight
  double value = 0.0;  ///< (S^tau)_ij without this edge alone, recomputed
};

struct RemovalAnswer {
  std::int64_t tau = 0;
  std::int64_t source = -1;
  std::int64_t target = -1;
  double value = 0.0;                 ///< (S^tau)_ij as the graph is
  std::vector<SpareEdge> edges = {};  ///< by value, largest first: what hurts least, or helps
  std::int64_t candidates = 0;        ///< edges that are no bridge
  std::int64_t bridges = 0;           ///< left out: to take one cuts the graph
  std::int64_t confirmed = 0;         ///< recomputed
};

/// Takes the same question as the advice on new edges; `weight` means nothing here. Two walks,
/// O(tau) for each edge, and a walk for each that is recomputed. Throws as that does.
RemovalAnswer answer_removal(const RewireQuestion& question, const engine::Executor& executor,
                             const BlockProgress& progress = {});

}  // namespace mpssm::analysis
