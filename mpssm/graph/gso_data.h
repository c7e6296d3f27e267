// SPDX-License-Identifier: MIT
// Private to graph/: what a Gso shares between its copies.
#pragma once

#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "mpssm/graph/csr.h"
#include "mpssm/graph/gso.h"
#include "mpssm/graph/order.h"
#include "mpssm/graph/row_reach.h"
#include "mpssm/graph/spectrum.h"

namespace mpssm::graph {

/// What eigen_basis.cpp found out about an operator at its first call.
struct EigenCache {
  std::once_flag once;
  std::unique_ptr<const EigenBasis> basis;
  bool is_given = false;  ///< give_eigen_basis() was there first
};
EigenCache& eigen_cache(const Gso& gso);

/// What order.cpp found out about an operator, each at its first call.
struct OrderCache {
  template <typename T>
  struct Rows {
    std::once_flag once;
    OrderedGso<T> ordered;
  };
  bool is_worth_looking = true;  ///< not for an operator that lives for one call
  std::once_flag gain_once;
  double gain = 0.0;
  std::once_flag order_once;
  NodeOrder order;
  std::tuple<Rows<float>, Rows<double>> rows;
};
OrderCache& order_cache(const Gso& gso);

/// row_reach(), found at its first call: of the nodes as they come, and in node_order().
struct ReachCache {
  struct Order {
    std::once_flag once;
    RowReach reach;
  };
  Order given;
  Order node_order;
};
ReachCache& reach_cache(const Gso& gso);

/// Gso::transposed_entries(), found at its first call.
struct TransposeCache {
  std::once_flag once;
  std::vector<std::int64_t> entries;
};

struct Gso::Data {
  Csr rows;
  std::vector<float> value_float;
  // Only what differs from `rows` is kept: no pattern if it is symmetric, no values if they are.
  Csr transposed;
  std::vector<float> transposed_float;
  std::vector<std::int64_t> graph_ptr = {0, 0};
  // What everybody reads: spans of the above, or of somebody else's memory (Gso::borrow).
  GsoArrays arrays = {.row_ptr = rows.row_ptr, .graph_ptr = graph_ptr};
  GsoKind kind = GsoKind::kCustom;
  std::shared_ptr<const Data> pattern;  ///< whose pattern this is, if not its own (with_values)

  mutable EigenCache eigen;
  mutable OrderCache order;
  mutable ReachCache reach;
  mutable TransposeCache transpose;
};

}  // namespace mpssm::graph
