// SPDX-License-Identifier: MIT
// Pooling of node features over the graphs of a batch.
#pragma once

#include <ATen/core/Tensor.h>

#include "mpssm/engine/pool.h"
#include "mpssm/graph/operators.h"

namespace mpssm::ops {

using engine::Pooling;

/// x [N, C] -> [G, C], or [G, 3 C] for kSumMaxMean; G = gso.num_graphs(). Differentiable in x,
/// once. A graph without nodes gives zeros. float and double on the CPU; anything else goes to
/// torch.
at::Tensor pool(const graph::Operators& gso, const at::Tensor& x, Pooling pooling);

}  // namespace mpssm::ops
