// SPDX-License-Identifier: MIT
// The operator as slices of channels see it: its nodes as they come, or in an order in which
// neighbours are near. Slices are packed and unpacked anyway, so nobody outside sees the order.
// Internal to engine/.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "mpssm/engine/hop_waves.h"
#include "mpssm/engine/recurrence.h"
#include "mpssm/graph/order.h"
#include "mpssm/graph/row_reach.h"
#include "mpssm/kernels/recurrence.h"

namespace mpssm::engine {

/// Products of a slice with A in a call from which on an order may pay: on a shuffled grid of a
/// million nodes its making took as long as nine of them saved.
inline constexpr std::int64_t kLeastOrderedHops = 16;

/// Hops of a call from which on it pays to look how far rows reach.
inline constexpr std::int64_t kLeastWavedHops = 4;

/// Whether a call takes the nodes of a group's operator in another order. Depends on operator and
/// sizes alone: forward and backward agree, for any number of threads and on every machine.
template <typename T>
bool takes_order(const RecurrenceShape& shape, std::int64_t group) {
  const std::int64_t lanes = kernels::kMaxSliceLanes<T>;
  const std::vector<std::int64_t> begins = shape.gso.channel_begins(shape.channels);
  const std::int64_t channels =
      shape.all_channels > 0 ? shape.all_channels : begins[group + 1] - begins[group];
  const std::int64_t slices = shape.batch * ((channels + lanes - 1) / lanes);
  if (shape.gso.is_sequence()) return false;
  if (shape.ordering != Ordering::kWhereItPays) return shape.ordering == Ordering::kAlways;
  if (shape.num_nodes() < graph::kLeastOrderedNodes ||
      slices * (shape.num_steps - 1) * shape.hops_per_step < kLeastOrderedHops) {
    return false;
  }
  // A row that is packed or unpacked in another order costs about as much as an entry that is not
  // near. Static, that is once in a call; of a sequence, input and output at every step.
  const bool sequence = shape.temporal || shape.all_outputs();
  return graph::entries_brought_near(shape.gso.of_group(group)) >= (sequence ? 3.0 : 1.0);
}

/// Whether hops may follow each other in waves; by operator and hops alone, as the order of nodes.
inline bool takes_waves(const RecurrenceShape& shape) {
  if (shape.temporal || shape.gso.is_sequence()) return false;
  if (shape.ordering != Ordering::kWhereItPays) return shape.ordering == Ordering::kAlways;
  return shape.num_nodes() >= graph::kLeastOrderedNodes &&
         (shape.num_steps - 1) * shape.hops_per_step >= kLeastWavedHops;
}

template <typename T>
struct SliceOperator {
  kernels::CsrView<T> a;  ///< of every step; of a sequence of graphs see at()
  kernels::CsrView<T> a_transposed;
  const std::int32_t* node = nullptr;   ///< row of the slice -> node, to pack
  const std::int32_t* place = nullptr;  ///< node -> row of the slice, to unpack
  HopWaves waves;                       ///< through hops between which nothing else happens

  explicit SliceOperator(const RecurrenceShape& shape, std::int64_t group = 0)
      : waves(shape.num_nodes()) {
    if (shape.gso.is_sequence()) {
      sequence_ = &shape.gso;
      group_ = group;
      return;
    }
    a = shape.gso.of_group(group).view<T>();
    a_transposed = shape.gso.of_group(group).transpose_view<T>();
    const bool is_ordered = takes_order<T>(shape, group);
    if (is_ordered) {
      const graph::OrderedGso<T>& ordered = graph::ordered_gso<T>(shape.gso.of_group(group));
      const graph::NodeOrder& order = graph::node_order(shape.gso.of_group(group));
      a = ordered.view();
      a_transposed = ordered.transpose_view();
      node = order.node.data();
      place = order.place.data();
    }
    if (takes_waves(shape)) {
      waves = HopWaves(shape.num_nodes(),
                       graph::row_reach<T>(shape.gso.of_group(group), is_ordered), row_bytes());
    }
  }

  /// A of the step from X(t) to X(t+1) of one copy of the batch, and its transpose.
  kernels::CsrView<T> at(std::int64_t copy, std::int64_t t) const {
    return sequence_ == nullptr ? a : sequence_->at(copy, t, group_).template view<T>();
  }
  kernels::CsrView<T> transposed_at(std::int64_t copy, std::int64_t t) const {
    return sequence_ == nullptr ? a_transposed
                                : sequence_->at(copy, t, group_).template transpose_view<T>();
  }

 private:
  /// What a hop touches for a row: states, input and sum in slices, and its entries.
  std::int64_t row_bytes() const {
    constexpr std::int64_t kSliceBytes = kernels::kMaxSliceLanes<T> * sizeof(T);
    constexpr std::int64_t kEntryBytes = sizeof(std::int32_t) + sizeof(T);
    return 4 * kSliceBytes + sizeof(std::int64_t) +
           kEntryBytes * a.row_ptr[a.num_rows] / std::max<std::int64_t>(a.num_rows, 1);
  }

  const graph::Operators* sequence_ = nullptr;
  std::int64_t group_ = 0;
};

/// Which groups may share a slice with the one before: their operators have entries at the same
/// places, so that one walk along them serves both. A directed graph's A and A' do not, nor does an
/// operator with loops beside one without.
template <typename T>
std::vector<bool> joined_groups(const RecurrenceShape& shape) {
  // Fewer hops do not repay the comparison.
  constexpr std::int64_t kLeastHops = 3;
  std::vector<bool> joined(static_cast<std::size_t>(shape.gso.num_groups()), false);
  const bool is_worth_it = (shape.num_steps - 1) * shape.hops_per_step >= kLeastHops;
  if (joined.size() == 1 || shape.gso.is_sequence() || !is_worth_it) return joined;
  const auto are_equal = [](const auto& a, const auto& b) {
    return a.data() == b.data() || std::equal(a.begin(), a.end(), b.begin(), b.end());
  };
  for (std::int64_t g = 1; g < shape.gso.num_groups(); ++g) {
    const graph::Gso& before = shape.gso.of_group(g - 1);
    const graph::Gso& own = shape.gso.of_group(g);
    if (before.num_nonzeros() != own.num_nonzeros() || !are_equal(before.col(), own.col()) ||
        !are_equal(before.row_ptr(), own.row_ptr())) {
      continue;
    }
    const bool is_ordered = takes_order<T>(shape, g);
    if (is_ordered != takes_order<T>(shape, g - 1)) continue;
    joined[static_cast<std::size_t>(g)] =
        !is_ordered || std::equal(graph::node_order(before).node.data(),
                                  graph::node_order(before).node.data() + own.num_nodes(),
                                  graph::node_order(own).node.data());
  }
  return joined;
}

/// Of every group of channels.
template <typename T>
std::vector<SliceOperator<T>> slice_operators(const RecurrenceShape& shape) {
  std::vector<SliceOperator<T>> operators;
  for (std::int64_t g = 0; g < shape.gso.num_groups(); ++g) operators.emplace_back(shape, g);
  return operators;
}

}  // namespace mpssm::engine
