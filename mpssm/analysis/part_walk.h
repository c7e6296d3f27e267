// SPDX-License-Identifier: MIT
// What walk.h answers, of a graph whose nodes are dealt to several processes: each walks its own
// nodes and reads at every step some nodes of others, the halo.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "mpssm/analysis/walk.h"
#include "mpssm/engine/executor.h"
#include "mpssm/engine/halo_recurrence.h"

namespace mpssm::analysis {

/// The nodes that this process has, from 0: parts that follow each other. All processes call what
/// takes it at the same time, and say -1 for a node that another has.
struct OwnParts {
  engine::HaloRows<double> rows;          ///< of A
  engine::HaloRows<double> transposed;    ///< of A'
  std::vector<std::int64_t> bounds = {};  ///< [parts + 1]: first node of each
};

/// (A^tau)_ij of one pair for each of `taus`, where the target is; zeros on the others. The bits of
/// the whole graph in one process: rows are summed in the same order.
std::vector<double> own_pair_profile(const OwnParts& own, std::int64_t source, std::int64_t target,
                                     std::span<const std::int64_t> taus,
                                     const engine::Executor& executor,
                                     const Progress& progress = {});

/// What one node sends to or hears from the nodes of each own part: [parts, taus].
std::vector<Reach> own_reach_profiles(const OwnParts& own, std::int64_t node, View view,
                                      std::span<const std::int64_t> taus,
                                      const engine::Executor& executor,
                                      const Progress& progress = {});
/// The nodes of one more part.
void add_part(Reach& all, const Reach& part);

/// Hops that messages need from the source to each own node, graph::kUnreachable where there is no
/// way. Each process goes as far as its own nodes let it, then tells the others: as many exchanges
/// as a way crosses from part to part, not as it has hops. `any`: whether it is true on any
/// process.
std::vector<std::int32_t> own_hops_from(const OwnParts& own, std::int64_t source,
                                        const std::function<bool(bool here)>& any);

}  // namespace mpssm::analysis
