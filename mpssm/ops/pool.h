// SPDX-License-Identifier: MIT
// Pooling of node features over the graphs of a batch.
#pragma once

#include <string_view>

#include <ATen/core/Tensor.h>

#include "mpssm/graph/gso.h"

namespace mpssm::ops {

enum class Pooling { kSum, kMean, kMax, kSumMaxMean /* the three side by side */ };

/// x [N, C] -> [G, C], or [G, 3 C] for kSumMaxMean; G = gso.num_graphs(). Differentiable in x. A
/// graph without nodes gives zeros.
at::Tensor pool(const graph::Gso& gso, const at::Tensor& x, Pooling pooling);

std::string_view to_string(Pooling pooling);
/// Throws std::invalid_argument listing the names: sum, mean, max, sum_max_mean.
Pooling pooling_from_name(std::string_view name);

}  // namespace mpssm::ops
