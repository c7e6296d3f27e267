// SPDX-License-Identifier: MIT
// The plans behind recurrence(): one problem in canonical form, one function and file per plan.
// Internal to ops/; shapes are checked before a problem is made.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/custom_function.h>

#include "mpssm/graph/gso.h"
#include "mpssm/ops/plan.h"

namespace mpssm::ops {

/// What stays the same between forward and backward.
struct ProblemShape {
  graph::Gso gso;
  std::int64_t batch = 1;
  std::int64_t num_steps = 1;
  std::int64_t channels = 1;
  bool temporal = false;
  Outputs outputs = Outputs::kLast;

  std::int64_t num_nodes() const { return gso.num_nodes(); }
  bool all_outputs() const { return outputs == Outputs::kAll; }
};

/// X(t+1) = A X(t) W + C(t+1) with every tensor contiguous, of one real dtype, on the CPU.
struct Problem {
  ProblemShape shape;
  at::Tensor input;       // C: [B, N, C] static, [B, T, N, C] temporal
  at::Tensor w_state;     // [C, C] real or [C/2] complex
  at::Tensor initial;     // [B, N, C] or undefined
  at::Tensor gso_values;  // [nonzeros] or undefined
};

/// Each returns [B, N, C] (kLast) or [B, T, N, C] (kAll), and is differentiable in all tensors.
at::Tensor run_stepwise(const Problem& problem);
at::Tensor run_doubling(const Problem& problem);
at::Tensor run_diagonal(const Problem& problem);
at::Tensor run_spectral(const Problem& problem);

/// Carry a ProblemShape from an autograd function's forward to its backward.
void save_shape(torch::autograd::AutogradContext* context, const ProblemShape& shape);
ProblemShape saved_shape(torch::autograd::AutogradContext* context);

/// Autograd functions take no undefined tensors: an absent one goes in empty and comes out
/// undefined.
at::Tensor empty_if_absent(const at::Tensor& tensor, const at::Tensor& like);
at::Tensor absent_if_empty(const at::Tensor& tensor);

/// Throws if a graph of the backward pass is being recorded: our gradients are not differentiable.
void check_single_backward(const char* plan);

/// True if some gradient will be wanted, so that autograd's bookkeeping is worth its price.
bool any_requires_grad(const Problem& problem);

}  // namespace mpssm::ops
