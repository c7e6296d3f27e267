// SPDX-License-Identifier: MIT
// Attention along the entries of an operator, as in graph attention networks.
#pragma once

#include <ATen/core/Tensor.h>

#include "mpssm/graph/gso.h"

namespace mpssm::ops {

/// For each head, y(i) = sum_j softmax_j(leaky_relu(to(i) + from(j), slope)) x(j) over the entries
/// (i, j) of `pattern`, whatever their values. x [N, heads * width], to and from [N, heads]; y like
/// x, zero for a node without entries. Differentiable once in all three. float or double on the
/// CPU. Keeps nonzeros * heads numbers.
at::Tensor attention(const graph::Gso& pattern, const at::Tensor& x, const at::Tensor& to,
                     const at::Tensor& from, double slope = 0.2);

}  // namespace mpssm::ops
