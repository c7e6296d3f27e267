// SPDX-License-Identifier: MIT
// Extremes over all pairs of nodes, in blocks of columns: N^2 results are looked at, none is kept.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "mpssm/analysis/deep_limit.h"
#include "mpssm/engine/executor.h"
#include "mpssm/graph/gso.h"

namespace mpssm::analysis {

/// Beyond this the N^2 pairs take hours: ask for single sources instead.
inline constexpr std::int64_t kMaxAllPairs = 20'000;

/// |(A^tau)_ij| of j = source, i = target.
struct PairValue {
  std::int64_t source = -1;
  std::int64_t target = -1;
  double value = 0.0;
};

struct Extremes {
  std::int64_t tau = 0;
  PairValue least;         ///< over pairs of one component, i = j included
  PairValue largest;       ///< over all pairs: the global sensitivity
  std::int64_t zeros = 0;  ///< ordered pairs of one component that nothing passes between yet
};

/// Called with the share of the work that is done, from one thread at a time.
using BlockProgress = std::function<void(double)>;

/// Extremes at each of `taus` (ascending). Components are those of the pattern of A, taken as
/// undirected. Memory: all_pairs_bytes(). Throws std::invalid_argument above kMaxAllPairs nodes.
std::vector<Extremes> extremes(const graph::Gso& gso, std::span<const std::int64_t> taus,
                               const engine::Executor& executor,
                               const BlockProgress& progress = {});

/// How the worst pairs are told.
enum class Order {
  kValue,  ///< least |(A^tau)_ij|
  kShare,  ///< least (A^tau)_ij / q_ij: held back by the graph rather than by low degrees
};
/// The `count` worst pairs i != j of one component at `tau`, worst first; each pair once if the
/// operator is symmetric. `limit` may be null unless kShare needs it.
std::vector<PairValue> worst_pairs(const graph::Gso& gso, std::int64_t tau, std::int64_t count,
                                   Order order, const DeepLimit* limit,
                                   const engine::Executor& executor,
                                   const BlockProgress& progress = {});

/// The least tau at which every pair of a component has (S^tau)_ij >= share * q_ij. From there on
/// it stays so: for each j, min_i (S^tau)_ij / q_ij never falls. nullopt: not up to `max_tau`.
struct Depth {
  std::int64_t tau = 0;
  PairValue last;  ///< the pair that takes longest, with its value then
};
std::optional<Depth> depth_of_all_pairs(const graph::Gso& gso, const DeepLimit& limit, double share,
                                        std::int64_t max_tau, const engine::Executor& executor,
                                        const BlockProgress& progress = {});

/// For tau = 0, 1, ...: the share of the ordered pairs of one component that have
/// (S^tau)_ij >= share * q_ij. Ends with the first 1 that stays, or at `max_tau`.
std::vector<double> reached_shares(const graph::Gso& gso, const DeepLimit& limit, double share,
                                   std::int64_t max_tau, const engine::Executor& executor,
                                   const BlockProgress& progress = {});

/// Largest graph that dense_power() takes.
inline constexpr std::int64_t kMaxDensePower = 2000;

/// A^tau whole, row-major; for pictures and tests. Throws std::invalid_argument above
/// kMaxDensePower nodes.
std::vector<double> dense_power(const graph::Gso& gso, std::int64_t tau,
                                const engine::Executor& executor);

/// What one of these needs at its peak.
std::int64_t all_pairs_bytes(std::int64_t num_nodes, const engine::Executor& executor);

}  // namespace mpssm::analysis
