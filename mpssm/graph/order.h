// SPDX-License-Identifier: MIT
// Another order of the nodes, in which neighbours are near each other: for operators too large for
// the cache, whose rows a product fetches from all over memory.
#pragma once

#include <cstdint>

#include "mpssm/graph/gso.h"
#include "mpssm/graph/kept_array.h"

namespace mpssm::graph {

/// A breadth-first order from a node far out, as Cuthill and McKee's without its sorting by degree:
/// the neighbours of a node are at most two levels of the search away.
struct NodeOrder {
  KeptArray<std::int32_t> node;   ///< [N]: the node at each place
  KeptArray<std::int32_t> place;  ///< [N]: the place of each node
};

/// Computed at the first call and kept in the operator (thread-safe). Cost: two breadth-first
/// searches.
const NodeOrder& node_order(const Gso& gso);

/// Rows apart up to which two nodes are near: rows of 128 bytes on both sides of a node that still
/// leave room in a shared cache.
inline constexpr std::int64_t kNearRows = std::int64_t{1} << 14;

/// Share of A's entries whose row and column are near each other: as the nodes come, or in `order`.
double near_share(const Gso& gso, const NodeOrder* order = nullptr);

/// Entries per node that node_order() brings near, on average; found out once per operator (with
/// one search only where that says enough) and kept. Zero for operators that fit the cache, and for
/// borrowed ones (Gso::borrow), which would have to find out at every call, unless give_order().
double entries_brought_near(const Gso& gso);

/// The operator with its rows and columns in node_order(). A row's entries stay in the order they
/// had, so that sums over them keep their bits.
template <typename T>
struct OrderedRows {
  KeptArray<std::int64_t> row_ptr;
  KeptArray<std::int32_t> col;
  KeptArray<T> value;
};
template <typename T>
struct OrderedGso {
  OrderedRows<T> rows;
  // Of the transpose only what differs, as in Gso.
  OrderedRows<T> transposed;

  kernels::CsrView<T> view() const;            ///< A
  kernels::CsrView<T> transpose_view() const;  ///< A'
};

/// Made at the first call for T (float or double) and kept in the operator (thread-safe).
template <typename T>
const OrderedGso<T>& ordered_gso(const Gso& gso);

/// Gives a borrowed operator (Gso::borrow) what was found out about its owner, before anybody else
/// sees it: entries_brought_near(), node_order() and ordered_gso<T>().
template <typename T>
void give_order(const Gso& gso, double entries_brought_near, NodeOrder order, OrderedGso<T> rows);

/// Bytes that an order and the operator in it take, if they are made.
std::int64_t ordered_bytes(const Gso& gso, std::int64_t element_size);

/// Operators of fewer nodes are never ordered unasked: three slices of 128 bytes a node fit into a
/// shared cache of 32 MiB, and the order would gain nothing.
inline constexpr std::int64_t kLeastOrderedNodes = std::int64_t{1} << 16;

}  // namespace mpssm::graph
