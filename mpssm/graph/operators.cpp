// SPDX-License-Identifier: MIT
#include "mpssm/graph/operators.h"

#include <algorithm>
#include <fmt/core.h>
#include <numeric>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace mpssm::graph {

Operators::Operators(std::vector<OperatorGroup> groups) {
  if (groups.empty()) {
    throw std::invalid_argument("Operators: expected at least one group, got none");
  }
  const auto first = groups.front().graph_ptr();
  for (const OperatorGroup& group : groups) {
    if (const auto own = group.graph_ptr(); !std::ranges::equal(own, first)) {
      throw std::invalid_argument(
          fmt::format("Operators: expected groups on the same nodes and graphs, got {} nodes in {} "
                      "graphs beside {} in {}",
                      own.back(), own.size() - 1, first.back(), first.size() - 1));
    }
    if (group.share < 1) {
      throw std::invalid_argument(
          fmt::format("Operators: expected shares of at least 1, got {}", group.share));
    }
  }
  if (groups.size() == 1 && groups.front().low_rank.is_none()) {
    first_ = groups.front().gso;
    return;
  }
  groups_ = std::make_shared<const std::vector<OperatorGroup>>(std::move(groups));
}

struct Operators::Sequence {
  std::vector<Operators> operators;  // none of which is a sequence
  std::vector<std::int32_t> index;   // [copies, steps]
  std::int64_t steps = 0;
  std::size_t largest = 0;  // of the operators
};

Operators Operators::sequence(std::vector<Operators> operators, std::vector<std::int32_t> index,
                              std::int64_t steps) {
  const auto fail = [](const std::string& what) {
    throw std::invalid_argument("Operators::sequence: " + what);
  };
  if (operators.empty()) fail("expected at least one operator, got none");
  if (steps < 1 || index.empty() || std::ssize(index) % steps != 0) {
    fail(fmt::format("expected an operator for each of {} steps, got an index of {}", steps,
                     index.size()));
  }
  const Operators& front = operators.front();
  std::size_t largest = 0;
  for (std::size_t i = 0; i < operators.size(); ++i) {
    const Operators& each = operators[i];
    if (each.is_sequence()) fail("expected operators of one step each, got a sequence");
    if (each.has_low_rank()) fail("expected sparse operators, got one of low rank");
    if (!std::ranges::equal(each.graph_ptr(), front.graph_ptr())) {
      fail(fmt::format("expected operators on the same nodes and graphs, got {} nodes beside {}",
                       each.num_nodes(), front.num_nodes()));
    }
    bool same_shares = each.num_groups() == front.num_groups();
    for (std::int64_t g = 0; same_shares && g < each.num_groups(); ++g) {
      same_shares = each.share(g) == front.share(g);
    }
    if (!same_shares) fail("expected the same groups of channels at every step");
    if (each.num_nonzeros() > operators[largest].num_nonzeros()) largest = i;
  }
  for (const std::int32_t i : index) {
    if (i < 0 || i >= std::ssize(operators)) {
      fail(fmt::format("expected an index below {}, got {}", operators.size(), i));
    }
  }
  Operators result = operators[largest];
  result.sequence_ = std::make_shared<const Sequence>(
      Sequence{std::move(operators), std::move(index), steps, largest});
  return result;
}

std::int64_t Operators::num_steps() const { return is_sequence() ? sequence_->steps : 1; }

std::int64_t Operators::num_copies() const {
  return is_sequence() ? std::ssize(sequence_->index) / sequence_->steps : 1;
}

const Gso& Operators::at(std::int64_t copy, std::int64_t step, std::int64_t group) const {
  if (!is_sequence()) return of_group(group);
  const std::int64_t row = num_copies() == 1 ? 0 : copy;
  const std::int32_t i = sequence_->index[static_cast<std::size_t>(row * sequence_->steps + step)];
  return sequence_->operators[static_cast<std::size_t>(i)].of_group(group);
}

Operators Operators::largest() const {
  return is_sequence() ? sequence_->operators[sequence_->largest] : *this;
}

Operators Operators::steps(std::int64_t begin, std::int64_t end) const {
  if (!is_sequence()) return *this;
  if (begin < 0 || begin >= end || end > num_steps()) {
    throw std::out_of_range(fmt::format("Operators::steps: expected some of {} steps, got [{}, {})",
                                        num_steps(), begin, end));
  }
  std::vector<std::int32_t> index;
  for (std::int64_t copy = 0; copy < num_copies(); ++copy) {
    const auto row = sequence_->index.begin() + copy * num_steps();
    index.insert(index.end(), row + begin, row + end);
  }
  return sequence(sequence_->operators, std::move(index), end - begin);
}

std::int64_t Operators::num_groups() const { return groups_ == nullptr ? 1 : std::ssize(*groups_); }

const Gso& Operators::only() const {
  if (is_sequence()) {
    throw std::invalid_argument("expected one operator for all steps, got a sequence of graphs");
  }
  if (!is_single()) {
    throw std::invalid_argument(
        num_groups() > 1
            ? fmt::format("expected one operator for all channels, got {} groups", num_groups())
            : "expected a sparse operator, got one of low rank");
  }
  return first_;
}

const Gso& Operators::of_group(std::int64_t group) const {
  if (groups_ == nullptr || is_sequence()) return only();
  if (is_low_rank(group)) {
    throw std::invalid_argument(
        fmt::format("expected a sparse operator of group {}, got {}, which has low rank", group,
                    graph::to_string(kind(group))));
  }
  return groups_->at(static_cast<std::size_t>(group)).gso;
}

const LowRankOperator& Operators::low_rank(std::int64_t group) const {
  static const LowRankOperator none;
  return groups_ == nullptr ? none : groups_->at(static_cast<std::size_t>(group)).low_rank;
}

bool Operators::has_low_rank() const {
  if (groups_ == nullptr) return false;
  return std::ranges::any_of(*groups_,
                             [](const OperatorGroup& group) { return !group.low_rank.is_none(); });
}

std::int64_t Operators::factor_group() const {
  for (std::int64_t g = 0; g < num_groups(); ++g) {
    if (is_low_rank(g) && low_rank(g).kind() != GsoKind::kVirtualNode) return g;
  }
  return -1;
}

GsoKind Operators::kind(std::int64_t group) const {
  return is_low_rank(group) ? low_rank(group).kind() : of_group(group).kind();
}

const std::string& Operators::edges(std::int64_t group) const {
  static const std::string all;
  return groups_ == nullptr ? all : groups_->at(static_cast<std::size_t>(group)).edges;
}

std::string Operators::name(std::int64_t group) const {
  const std::string_view of_all = to_string(kind(group));
  return edges(group).empty() ? std::string(of_all) : fmt::format("{}({})", of_all, edges(group));
}

std::int64_t Operators::num_values() const {
  const std::int64_t group = factor_group();
  return group < 0 ? num_nonzeros() : low_rank(group).num_factors();
}

Operators Operators::with_factors(std::span<const double> factors) const {
  const std::int64_t group = factor_group();
  if (group < 0) throw std::invalid_argument("Operators::with_factors: no group has low rank");
  std::vector<OperatorGroup> groups = *groups_;
  LowRankOperator& own = groups[static_cast<std::size_t>(group)].low_rank;
  own = own.with_factors(factors);
  return Operators(std::move(groups));
}

Operators Operators::alone(std::int64_t group) const {
  if (is_low_rank(group)) return Operators({{.gso = {}, .low_rank = low_rank(group)}});
  if (!is_sequence()) return of_group(group);
  std::vector<Operators> operators;
  for (const Operators& step : sequence_->operators) operators.push_back(step.of_group(group));
  return sequence(std::move(operators), sequence_->index, sequence_->steps);
}

std::int64_t Operators::share(std::int64_t group) const {
  return groups_ == nullptr ? 1 : groups_->at(static_cast<std::size_t>(group)).share;
}

std::int64_t Operators::num_nonzeros() const {
  if (is_sequence()) return largest().num_nonzeros();
  std::int64_t sum = 0;
  for (std::int64_t g = 0; g < num_groups(); ++g) {
    sum += is_low_rank(g) ? low_rank(g).num_factors() : of_group(g).num_nonzeros();
  }
  return sum;
}

std::vector<std::int64_t> Operators::channel_begins(std::int64_t channels) const {
  if (groups_ == nullptr) return {0, channels};
  std::vector<std::int64_t> shares;
  for (const OperatorGroup& group : *groups_) shares.push_back(group.share);
  return deal_channels(shares, channels);
}

std::vector<std::int64_t> deal_channels(std::span<const std::int64_t> shares,
                                        std::int64_t channels) {
  const std::int64_t groups = std::ssize(shares);
  const std::int64_t pairs = channels / 2;
  if (groups > 1 && pairs < groups) {
    throw std::invalid_argument(
        fmt::format("expected a pair of channels or more for each of {} groups, got {} channels",
                    groups, channels));
  }
  const std::int64_t all = std::reduce(shares.begin(), shares.end());
  std::vector<std::int64_t> begins = {0};
  std::int64_t before = 0;
  for (std::int64_t g = 0; g + 1 < groups; ++g) {
    before += shares[g];
    const std::int64_t nearest = (2 * pairs * before + all) / (2 * all);
    const std::int64_t least = begins.back() / 2 + 1;
    begins.push_back(2 * std::clamp(nearest, least, pairs - (groups - 1 - g)));
  }
  begins.push_back(channels);  // an odd one, which only a dense W can have, is the last group's
  return begins;
}

Operators select_graphs(const Operators& batch, std::span<const std::int64_t> graphs) {
  if (batch.is_single()) return select_graphs(batch.only(), graphs);
  std::vector<OperatorGroup> groups;
  for (std::int64_t g = 0; g < batch.num_groups(); ++g) {
    groups.push_back({.gso = {}, .share = batch.share(g), .edges = batch.edges(g)});
    if (batch.is_low_rank(g)) {
      groups.back().low_rank = select_graphs(batch.low_rank(g), graphs);
    } else {
      groups.back().gso = select_graphs(batch.of_group(g), graphs);
    }
  }
  return Operators(std::move(groups));
}

}  // namespace mpssm::graph
