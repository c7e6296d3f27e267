// SPDX-License-Identifier: MIT
// Entries of an operator from numbers at its nodes: attention, as in GAT.
#pragma once

#include <ATen/core/Tensor.h>

#include "mpssm/graph/gso.h"

namespace mpssm::ops {

/// target, source [N] -> [nonzeros], in the order of gso.col(): for entry (i, j) the softmax over
/// row i of leaky(target[i] + source[j]), with this slope below zero. The operator's own values are
/// not read. Differentiable in both, once. float and double on the CPU.
at::Tensor edge_softmax(const graph::Gso& gso, const at::Tensor& target, const at::Tensor& source,
                        double slope = 0.2);

}  // namespace mpssm::ops
