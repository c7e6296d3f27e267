// SPDX-License-Identifier: MIT
// An operator as it comes through the C interface: pointers into tensors.
#pragma once

#include <cstdint>
#include <vector>

#include "mpssm/graph/operators.h"

namespace mpssm::native {

/// Every field takes eight bytes, so that a caller can pack it as a row of 64-bit numbers.
/// Null pointers of the transpose: as the operator's own.
struct GsoArguments {
  std::int64_t is_double;
  std::int64_t num_nodes;
  std::int64_t num_nonzeros;
  std::int64_t num_graphs;
  const std::int64_t* row_ptr;
  const std::int32_t* col;
  const void* value;
  const std::int64_t* transposed_row_ptr;
  const std::int32_t* transposed_col;
  const void* transposed_value;
  const std::int64_t* graph_ptr;

  // What graph/order.h found out, `gain` null if nothing; the operator in that order, as above.
  const double* gain;
  const std::int32_t* node;
  const std::int32_t* place;
  const std::int64_t* ordered_row_ptr;
  const std::int32_t* ordered_col;
  const void* ordered_value;
  const std::int64_t* ordered_transposed_row_ptr;
  const std::int32_t* ordered_transposed_col;
  const void* ordered_transposed_value;

  // The eigenbasis of graph/spectrum.h, no entries if there is none.
  std::int64_t num_basis_entries;
  const double* eigenvalues;
  const std::int64_t* basis_row_ptr;
  const std::int32_t* basis_col;
  const void* vectors;
  const void* vectors_transposed;

  // Of the channels of a recurrence, beside other groups (graph/operators.h).
  std::int64_t share;

  bool has_basis() const { return num_basis_entries > 0; }
  /// The operator on this memory, valid as long as it is.
  graph::Gso borrow() const;
};

/// The operators of a recurrence, one behind the other: of groups of channels, or of a sequence of
/// graphs with its index (graph::Operators).
graph::Operators borrow_groups(const GsoArguments* groups, std::int64_t count);
graph::Operators borrow_sequence(const GsoArguments* operators, std::int64_t count,
                                 std::vector<std::int32_t> index, std::int64_t steps);

}  // namespace mpssm::native
