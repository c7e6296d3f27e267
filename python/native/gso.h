// SPDX-License-Identifier: MIT
// An operator as it comes through the C interface: pointers into tensors.
#pragma once

#include <cstdint>

#include "mpssm/graph/gso.h"

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

  /// The operator on this memory, valid as long as it is.
  graph::Gso borrow() const;
};

}  // namespace mpssm::native
