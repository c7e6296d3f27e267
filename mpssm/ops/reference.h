// SPDX-License-Identifier: MIT
// The definition in plain tensor operations: what every plan must equal, and what runs where we
// have no kernel (other devices and dtypes). Differentiable by torch in every argument.
#pragma once

#include <ATen/core/Tensor.h>

#include "mpssm/graph/operators.h"
#include "mpssm/ops/recurrence.h"

namespace mpssm::ops {

/// A x for x of shape [..., N, C]; `values` [nonzeros] replaces the entries of A if defined.
at::Tensor reference_spmm(const graph::Gso& gso, const at::Tensor& x,
                          const at::Tensor& values = {});

/// X W for a dense [C, C] or a diagonal (complex [C/2]) W.
at::Tensor reference_times_w(const at::Tensor& x, const at::Tensor& w_state);

/// The loop X(t+1) = A X(t) W + U(t+1) B, each group of channels with its own A and W;
/// `options.plan` is not looked at.
RecurrenceResult reference_recurrence_static(const graph::Operators& gso, const at::Tensor& u,
                                             const RecurrenceWeights& weights,
                                             std::int64_t num_steps,
                                             const RecurrenceOptions& options = {});
RecurrenceResult reference_recurrence_temporal(const graph::Operators& gso, const at::Tensor& u,
                                               const RecurrenceWeights& weights,
                                               const RecurrenceOptions& options = {});

}  // namespace mpssm::ops
