// SPDX-License-Identifier: MIT
// The multi-hop view of a deep model: what each block takes from how far, once by the length of the
// walks that its recurrence goes, once by exact distance, as a network with rewired edges (DRew)
// would see it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include "mpssm/analysis/model_answers.h"
#include "mpssm/graph/gso.h"

namespace mpssm::analysis {

/// X = sum_i A^i U (B W^i): the norms of the B W^i for i = 0 .. hops, and, as a mean over `targets`
/// (rows t of X), what comes by walks of i hops, sum_j |(A^i)_tj| ||B W^i||, and what comes from
/// the nodes j at d hops, sum_j ||sum_i (A^i)_tj B W^i||. Norms are Frobenius's, so both are exact:
/// the second are those of the Jacobian of row t by row j of U. b [C_in, C] real, w as
/// ops::recurrence takes it.
BlockHops block_hops(const graph::Gso& gso, const at::Tensor& b, const at::Tensor& w,
                     std::int64_t hops, std::span<const std::int64_t> targets);

}  // namespace mpssm::analysis
