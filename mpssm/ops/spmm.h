// SPDX-License-Identifier: MIT
// One hop of message passing: the graph shift operator applied to node features.
#pragma once

#include <ATen/core/Tensor.h>

#include "mpssm/graph/gso.h"

namespace mpssm::ops {

/// A x for x of shape [..., N, C]; leading axes are independent copies over one graph.
/// Differentiable in x, any number of times. float and double on the CPU; anything else goes to
/// reference_spmm. Cost: nonzeros x C per copy. Throws if the shape does not fit the operator.
at::Tensor spmm(const graph::Gso& gso, const at::Tensor& x);

/// A' x, the adjoint of spmm.
at::Tensor spmm_transposed(const graph::Gso& gso, const at::Tensor& x);

}  // namespace mpssm::ops
