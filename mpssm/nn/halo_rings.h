// SPDX-License-Identifier: MIT
// The nodes of others within several hops of a rank's own, fetched once with their rows of A: what
// serves all hops of a block by one exchange.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "mpssm/ranks/communicator.h"

namespace mpssm::nn {

/// Rows of an operator, columns as numbers of its nodes.
struct OwnRows {
  std::vector<std::int64_t> row_ptr = {0};
  std::vector<std::int32_t> col = {};
  std::vector<float> value = {};
};

struct HaloRings {
  OwnRows rows = {};                      ///< of all rings but the last
  std::vector<std::int64_t> nodes = {};   ///< of the rings, each of them sorted
  std::vector<std::int64_t> within = {};  ///< [hops + 1]: own nodes and those of as many rings
  /// Of all ranks: nodes in rings, each for one that reads it, and ranks::kRowComputedAgain for
  /// each row that is computed again.
  double rows_of_all_ranks = 0.0;
};

/// Times the own nodes and the nearest ring that rings may be: whoever cut a graph for want of
/// memory is not given all of it again.
inline constexpr double kMostRingRows = 2.0;

/// Rings of own nodes [bounds[rank], bounds[rank + 1]) whose rows are given. Nothing if that
/// is `too_many` rows or more of all ranks, as counted above, or one of them more than `most` times
/// its own and the nearest ring: found before rows of these are fetched. Called by all ranks at
/// once.
std::optional<HaloRings> fetch_rings(ranks::Communicator& ranks,
                                     const std::vector<std::int64_t>& bounds, const OwnRows& rows,
                                     std::int64_t hops, double too_many, double most);

/// Rows of own nodes, `first` and on, followed by those of the rings; columns, as numbers of nodes,
/// become places in [own nodes, rings].
void append_rings(std::int64_t first, const HaloRings& rings, OwnRows& own);

}  // namespace mpssm::nn
