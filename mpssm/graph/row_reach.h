// SPDX-License-Identifier: MIT
// How far rows of an operator reach in the order they stand in: of a matrix whose entries are near
// its diagonal, the first rows of A^2 x can be had long before the last ones of A x.
#pragma once

#include <cstdint>
#include <vector>

#include "mpssm/graph/gso.h"

namespace mpssm::graph {

/// Rows of a block, and of the sums that the adjoint kernels take one after the other: cutting rows
/// between blocks leaves these as they are.
inline constexpr std::int64_t kReachRows = 256;

/// For each block of rows, how many rows from the first on contain it, all that it and the blocks
/// before it read, and all that read one of them: along A and along A' the same. Never falls.
using RowReach = std::vector<std::int64_t>;

/// Of the operator as its nodes come, or of ordered_gso<T>(). Made at the first call, by one look
/// at every entry, and kept in the operator (thread-safe).
template <typename T>
const RowReach& row_reach(const Gso& gso, bool is_ordered);

}  // namespace mpssm::graph
