// SPDX-License-Identifier: MIT
// The linear recurrence of the model, X(t+1) = A X(t) W + U(t+1) B, by one of four plans that all
// give the same numbers.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "mpssm/engine/plan.h"
#include "mpssm/engine/precision.h"
#include "mpssm/graph/operators.h"

namespace mpssm::ops {

using engine::Outputs;
using engine::Plan;
using engine::PlanQuery;

/// W and B.
struct RecurrenceWeights {
  /// Dense W: real [C, C], with operators per group of channels one [C_g, C_g] for each, flat and
  /// one after the other. Diagonal W: complex sigma [C/2], acting on the C real channels taken in
  /// pairs (re, im). Its dtype decides which.
  at::Tensor w_state;
  /// B: real [C_in, C]. Undefined: u is already U B.
  at::Tensor w_in = {};
};

struct RecurrenceOptions {
  Plan plan = Plan::kAuto;
  /// Prices that kAuto goes by, for the time of the call; null: engine::builtin_plan_costs().
  const engine::PlanCosts* plan_costs = nullptr;
  Outputs outputs = Outputs::kLast;
  /// X(0): [..., N, C]. Undefined: zero.
  at::Tensor initial = {};
  /// Calls with this operator that can share its eigenbasis, for Plan::kAuto: with 1 it is computed
  /// only where it pays within this call.
  std::int64_t operator_calls = 1;
  /// With a diagonal W: how many channels the whole has that these are some of (0: these are all);
  /// plan and bits are then those of the whole.
  std::int64_t all_channels = 0;
  /// r of a sequence: X(t+1) = A^r X(t) W^r + U(t+1) B. Static calls have one hop per step.
  std::int64_t hops_per_step = 1;
  /// Entries of A in the order of gso.col(), replacing its own; may require a gradient. Plans
  /// stepwise and diagonal; the latter then keeps O(sqrt T) slices of channels at a time. With a
  /// group of low rank that is no virtual node: its factors P and Q, [2, N, rank], in every plan.
  at::Tensor gso_values = {};
  /// kBf16: states and factors in bfloat16 where the plan has such a form (engine::runs_in_bf16);
  /// tensors are float either way. Not with Plan::kReference.
  engine::Precision precision = engine::Precision::kFloat32;
};

struct RecurrenceResult {
  at::Tensor output;  ///< [..., N, C] for kLast, [..., T, N, C] for kAll
  at::Tensor state;   ///< X(T), [..., N, C]: hand it to the next piece as `initial`
};

/// Constant input, `num_steps` = T = k + 1 steps for k hops: X(T) = sum_(i<T) A^i U B W^i, plus
/// A^T X(0) W^T. u: [..., N, C_in]; leading axes are independent copies over one graph.
/// Exact gradients for u, W, B and X(0). Throws (c10::Error) on shapes, dtypes or plans that do not
/// fit, saying what was expected.
RecurrenceResult recurrence_static(const graph::Operators& gso, const at::Tensor& u,
                                   const RecurrenceWeights& weights, std::int64_t num_steps,
                                   const RecurrenceOptions& options = {});

/// A sequence: u [..., T, N, C_in], right at every step. The operators may be a sequence, too, of T
/// steps, for each copy by itself or for all alike: X(t) = A(t) X(t-1) W + U(t) B.
RecurrenceResult recurrence_temporal(const graph::Operators& gso, const at::Tensor& u,
                                     const RecurrenceWeights& weights,
                                     const RecurrenceOptions& options = {});

}  // namespace mpssm::ops
