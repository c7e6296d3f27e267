// SPDX-License-Identifier: MIT
// The operators of one recurrence: usually one A, or one for each group of channels, or one (or as
// many as there are groups) for each step of a sequence of graphs.
#pragma once

#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "mpssm/graph/gso.h"
#include "mpssm/graph/low_rank.h"

namespace mpssm::graph {

/// An operator and how much of the channels it moves, beside the shares of the other groups.
struct OperatorGroup {
  Gso gso;
  std::int64_t share = 1;
  LowRankOperator low_rank = {};  ///< in place of `gso`, unless it is none
  std::string edges = {};         ///< that it has, "bond=double", for people; empty: all

  std::int64_t num_nodes() const {
    return low_rank.is_none() ? gso.num_nodes() : low_rank.num_nodes();
  }
  std::span<const std::int64_t> graph_ptr() const {
    return low_rank.is_none() ? gso.graph_ptr() : low_rank.graph_ptr();
  }
};

/// Where the channels of each group begin, and at the end all of them: [groups + 1]. Pairs of
/// channels stay together, each group has one. Throws std::invalid_argument if there are too few.
std::vector<std::int64_t> deal_channels(std::span<const std::int64_t> shares,
                                        std::int64_t channels);

/// Operators on the same nodes, immutable and cheap to copy. Channels are dealt to the groups in
/// order, by their shares: X_g(t+1) = A_g X_g(t) W_g + C_g(t+1).
class Operators {
 public:
  /// One operator on zero nodes.
  Operators() = default;
  /// One operator for all channels.
  Operators(Gso gso) : first_(std::move(gso)) {}
  /// Throws std::invalid_argument unless there is a group, all have the same nodes and graphs, and
  /// shares are at least 1.
  explicit Operators(std::vector<OperatorGroup> groups);

  /// A sequence of graphs, A(t): copy b of a batch goes to its step t by
  /// operators[index[b * steps + t]], X(t) = A(t) X(t-1) W + C(t). An index of one row serves all
  /// copies. Throws std::invalid_argument unless all have the same nodes, graphs and shares of
  /// groups, none of low rank, and the index names them.
  static Operators sequence(std::vector<Operators> operators, std::vector<std::int32_t> index,
                            std::int64_t steps);

  std::int64_t num_groups() const;
  bool is_single() const { return groups_ == nullptr && sequence_ == nullptr; }
  /// The operator of all channels and steps; throws std::invalid_argument if there are several.
  const Gso& only() const;

  bool is_sequence() const { return sequence_ != nullptr; }
  std::int64_t num_steps() const;   ///< of a sequence
  std::int64_t num_copies() const;  ///< of a batch that it tells apart; 1: all alike
  /// A of the step to X(step + 1), of one group of channels.
  const Gso& at(std::int64_t copy, std::int64_t step, std::int64_t group = 0) const;
  /// Of a sequence the step with most entries, else itself: what costs are reckoned with.
  Operators largest() const;
  /// Steps [begin, end) of a sequence; what has no steps is itself.
  Operators steps(std::int64_t begin, std::int64_t end) const;

  /// Not of a sequence. of_group() throws std::invalid_argument if the group has low rank.
  const Gso& of_group(std::int64_t group) const;
  /// None unless the group has low rank.
  const LowRankOperator& low_rank(std::int64_t group) const;
  bool is_low_rank(std::int64_t group) const { return !low_rank(group).is_none(); }
  bool has_low_rank() const;
  /// The group of low rank whose factors a call may give in place of its own: the first one that
  /// is no virtual node. -1: none.
  std::int64_t factor_group() const;
  GsoKind kind(std::int64_t group) const;
  /// The edges that a group has, "bond=double"; empty: all.
  const std::string& edges(std::int64_t group) const;
  /// "sym_normalized", or "sym_normalized(bond=double)" if it has some of the edges.
  std::string name(std::int64_t group) const;
  std::int64_t share(std::int64_t group) const;
  /// Entries that a call may give in place of A's own: nonzeros, or the factors of factor_group().
  std::int64_t num_values() const;
  /// With other factors of factor_group(), [2, N, rank].
  Operators with_factors(std::span<const double> factors) const;
  /// What one group of channels is moved by, as if there were no other; of a sequence, too.
  Operators alone(std::int64_t group) const;

  std::int64_t num_nodes() const {
    return groups_ == nullptr ? first_.num_nodes() : groups_->front().num_nodes();
  }
  /// Of all groups together, of low rank those of the factors; of a sequence, largest().
  std::int64_t num_nonzeros() const;
  std::int64_t num_graphs() const { return std::ssize(graph_ptr()) - 1; }
  std::span<const std::int64_t> graph_ptr() const {
    return groups_ == nullptr ? first_.graph_ptr() : groups_->front().graph_ptr();
  }

  /// deal_channels() by the shares of the groups.
  std::vector<std::int64_t> channel_begins(std::int64_t channels) const;

 private:
  struct Sequence;
  Gso first_;  // unused if there are groups
  /// Null: first_ alone. Of a sequence, those of its largest step.
  std::shared_ptr<const std::vector<OperatorGroup>> groups_;
  std::shared_ptr<const Sequence> sequence_;  // null: A is the same at every step
};

/// The operators of some graphs of a batch, see select_graphs() of one.
Operators select_graphs(const Operators& batch, std::span<const std::int64_t> graphs);

}  // namespace mpssm::graph
