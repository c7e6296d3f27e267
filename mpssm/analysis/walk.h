// SPDX-License-Identifier: MIT
// Powers of the operator seen from one node: (A^tau)_ij for one j and all i, or one i and all j.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "mpssm/engine/executor.h"
#include "mpssm/engine/halo_recurrence.h"
#include "mpssm/graph/gso.h"
#include "mpssm/graph/low_rank.h"

namespace mpssm::analysis {

/// (A^tau)_ij is what is left at node i of a unit that node j held tau steps before.
enum class View {
  kFromSource,  ///< column: what of this node arrives at every node
  kToTarget,    ///< row: what of every node arrives at this one
};

/// Walks tau = 0, 1, 2, ...: one sparse product a step, two vectors of N numbers, never N x N.
class Walk {
 public:
  /// Throws std::out_of_range if there is no such node. The executor must outlive the walk.
  Walk(const graph::Gso& gso, std::int64_t node, View view, const engine::Executor& executor);
  /// The own nodes of one of several processes, which step at the same time; `node` is -1 on those
  /// that do not have it. Rows of A for what it sends, of A' for what it hears; what they point to
  /// must outlive the walk.
  Walk(const engine::HaloRows<double>& rows, std::int64_t node, const engine::Executor& executor);

  void step();
  std::int64_t tau() const { return tau_; }
  /// [N], of the own nodes.
  std::span<const double> values() const { return std::span(values_).first(rows_.own()); }

 private:
  graph::Gso gso_;
  const engine::Executor& executor_;
  engine::HaloRows<double> rows_;  // of all nodes: without a fill
  std::vector<double> values_;
  std::vector<double> next_;
  std::int64_t tau_ = 0;
};

/// Called after every step with the tau that is done.
using Progress = std::function<void(std::int64_t tau)>;

/// Calls visit(position in taus) for each of `taus` (any order, repeats allowed, none negative)
/// when the walk is there.
void visit_taus(Walk& walk, std::span<const std::int64_t> taus, const Progress& progress,
                const std::function<void(std::size_t)>& visit);

/// (A^tau)_ij of one pair for each of `taus`.
std::vector<double> pair_profile(const graph::Gso& gso, std::int64_t source, std::int64_t target,
                                 std::span<const std::int64_t> taus,
                                 const engine::Executor& executor, const Progress& progress = {});

/// The same of low rank, P_i M^(tau-1) Q_j: walks among the virtual nodes alone.
std::vector<double> pair_profile(const graph::LowRankOperator& a, std::int64_t source,
                                 std::int64_t target, std::span<const std::int64_t> taus);

/// What one node sends or hears at one tau, over all nodes (itself included).
struct Reach {
  std::int64_t tau = 0;
  std::int64_t nodes = 0;  ///< that something of it arrives at: |(A^tau)_ij| > 0
  double largest = 0.0;    ///< of |(A^tau)_ij|
  double smallest = 0.0;   ///< of those above zero; 0 if there is none
  double total = 0.0;      ///< sum of |(A^tau)_ij|
};
/// Of these nodes.
Reach reach_of(std::span<const double> values, std::int64_t tau);
std::vector<Reach> reach_profile(const graph::Gso& gso, std::int64_t node, View view,
                                 std::span<const std::int64_t> taus,
                                 const engine::Executor& executor, const Progress& progress = {});

/// The first tau with (A^tau)_ij >= threshold; nullopt if there is none up to `max_tau`.
std::optional<std::int64_t> first_reaching(const graph::Gso& gso, std::int64_t source,
                                           std::int64_t target, double threshold,
                                           std::int64_t max_tau, const engine::Executor& executor,
                                           const Progress& progress = {});

/// Hops that messages need from each node to `target`, graph::kUnreachable where there is no way.
/// For an operator with stored zeros these do not count.
std::vector<std::int32_t> hops_to(const graph::Gso& gso, std::int64_t target);

}  // namespace mpssm::analysis
