// SPDX-License-Identifier: MIT
// The operator as slices of channels see it: its nodes as they come, or in an order in which
// neighbours are near. Slices are packed and unpacked anyway, so nobody outside sees the order.
// Internal to engine/.
#pragma once

#include <cstdint>

#include "mpssm/engine/recurrence.h"
#include "mpssm/graph/order.h"
#include "mpssm/kernels/recurrence.h"

namespace mpssm::engine {

/// Products of a slice with A in a call from which on an order may pay: on a shuffled grid of a
/// million nodes its making took as long as nine of them saved.
inline constexpr std::int64_t kLeastOrderedHops = 16;

/// Whether a call takes its nodes in another order. Depends on operator and sizes alone: forward
/// and backward agree, for any number of threads and on every machine.
template <typename T>
bool takes_order(const RecurrenceShape& shape) {
  const std::int64_t lanes = kernels::kMaxSliceLanes<T>;
  const std::int64_t channels = shape.all_channels > 0 ? shape.all_channels : shape.channels;
  const std::int64_t slices = shape.batch * ((channels + lanes - 1) / lanes);
  if (shape.ordering != Ordering::kWhereItPays) return shape.ordering == Ordering::kAlways;
  if (shape.num_nodes() < graph::kLeastOrderedNodes ||
      slices * (shape.num_steps - 1) < kLeastOrderedHops) {
    return false;
  }
  // A row that is packed or unpacked in another order costs about as much as an entry that is not
  // near. Static, that is once in a call; of a sequence, input and output at every step.
  const bool sequence = shape.temporal || shape.all_outputs();
  return graph::entries_brought_near(shape.gso.only()) >= (sequence ? 3.0 : 1.0);
}

template <typename T>
struct SliceOperator {
  kernels::CsrView<T> a;
  kernels::CsrView<T> a_transposed;
  const std::int32_t* node = nullptr;   ///< row of the slice -> node, to pack
  const std::int32_t* place = nullptr;  ///< node -> row of the slice, to unpack

  explicit SliceOperator(const RecurrenceShape& shape)
      : a(shape.gso.only().view<T>()), a_transposed(shape.gso.only().transpose_view<T>()) {
    if (!takes_order<T>(shape)) return;
    const graph::OrderedGso<T>& ordered = graph::ordered_gso<T>(shape.gso.only());
    const graph::NodeOrder& order = graph::node_order(shape.gso.only());
    a = ordered.view();
    a_transposed = ordered.transpose_view();
    node = order.node.data();
    place = order.place.data();
  }
};

}  // namespace mpssm::engine
