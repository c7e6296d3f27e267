// SPDX-License-Identifier: MIT
#include "mpssm/graph/operators.h"

#include <algorithm>
#include <fmt/core.h>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

namespace mpssm::graph {

Operators::Operators(std::vector<OperatorGroup> groups) {
  if (groups.empty()) {
    throw std::invalid_argument("Operators: expected at least one group, got none");
  }
  first_ = groups.front().gso;
  for (const OperatorGroup& group : groups) {
    if (!std::ranges::equal(group.gso.graph_ptr(), first_.graph_ptr())) {
      throw std::invalid_argument(fmt::format(
          "Operators: expected groups on the same nodes and graphs, got {} nodes in {} "
          "graphs beside {} in {}",
          group.gso.num_nodes(), group.gso.num_graphs(), first_.num_nodes(), first_.num_graphs()));
    }
    if (group.share < 1) {
      throw std::invalid_argument(
          fmt::format("Operators: expected shares of at least 1, got {}", group.share));
    }
  }
  if (groups.size() > 1) {
    groups_ = std::make_shared<const std::vector<OperatorGroup>>(std::move(groups));
  }
}

Operators Operators::sequence(std::vector<Gso> operators, std::vector<std::int32_t> index,
                              std::int64_t steps) {
  const auto fail = [](const std::string& what) {
    throw std::invalid_argument("Operators::sequence: " + what);
  };
  if (operators.empty()) fail("expected at least one operator, got none");
  if (steps < 1 || index.empty() || std::ssize(index) % steps != 0) {
    fail(fmt::format("expected an operator for each of {} steps, got an index of {}", steps,
                     index.size()));
  }
  Operators result;
  result.first_ = operators.front();
  for (const Gso& gso : operators) {
    if (!std::ranges::equal(gso.graph_ptr(), result.first_.graph_ptr())) {
      fail(fmt::format("expected operators on the same nodes and graphs, got {} nodes beside {}",
                       gso.num_nodes(), result.first_.num_nodes()));
    }
    if (gso.num_nonzeros() > result.first_.num_nonzeros()) result.first_ = gso;
  }
  for (const std::int32_t i : index) {
    if (i < 0 || i >= std::ssize(operators)) {
      fail(fmt::format("expected an index below {}, got {}", operators.size(), i));
    }
  }
  result.sequence_ =
      std::make_shared<const Sequence>(Sequence{std::move(operators), std::move(index), steps});
  return result;
}

std::int64_t Operators::num_steps() const { return is_sequence() ? sequence_->steps : 1; }

std::int64_t Operators::num_copies() const {
  return is_sequence() ? std::ssize(sequence_->index) / sequence_->steps : 1;
}

const Gso& Operators::at(std::int64_t copy, std::int64_t step) const {
  if (!is_sequence()) return only();
  const std::int64_t row = num_copies() == 1 ? 0 : copy;
  return sequence_->operators[static_cast<std::size_t>(
      sequence_->index[static_cast<std::size_t>(row * sequence_->steps + step)])];
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
        fmt::format("expected one operator for all channels, got {} groups", num_groups()));
  }
  return first_;
}

const Gso& Operators::of_group(std::int64_t group) const {
  return groups_ == nullptr ? only() : groups_->at(static_cast<std::size_t>(group)).gso;
}

std::int64_t Operators::share(std::int64_t group) const {
  return groups_ == nullptr ? 1 : groups_->at(static_cast<std::size_t>(group)).share;
}

std::int64_t Operators::num_nonzeros() const {
  if (is_sequence()) return first_.num_nonzeros();
  std::int64_t sum = 0;
  for (std::int64_t g = 0; g < num_groups(); ++g) sum += of_group(g).num_nonzeros();
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
    groups.push_back({select_graphs(batch.of_group(g), graphs), batch.share(g)});
  }
  return Operators(std::move(groups));
}

}  // namespace mpssm::graph
