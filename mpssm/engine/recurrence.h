// SPDX-License-Identifier: MIT
// The linear recurrence X(t+1) = A X(t) W + C(t+1) on plain memory, forward and backward, by one of
// four plans that all give the same numbers. No allocation that grows with the problem, no state
// between calls: a front asks for the sizes, brings the memory and the threads.
#pragma once

#include <cstdint>

#include "mpssm/engine/executor.h"
#include "mpssm/engine/plan.h"
#include "mpssm/engine/precision.h"
#include "mpssm/engine/workspace.h"
#include "mpssm/graph/operators.h"

namespace mpssm::engine {

/// Whether plans diagonal and doubling may take the nodes in an order in which neighbours are near
/// (graph/order.h). Outputs and gradients of C and X(0) keep their bits; that of W is a sum over
/// the nodes and keeps its digits.
enum class Ordering { kWhereItPays, kNever, kAlways };

/// Sizes of a problem. Arrays are row-major with axes [batch, time, node, channel].
struct RecurrenceShape {
  graph::Operators gso;  ///< one A, or one for each group of channels, or one for each step
  std::int64_t batch = 1;
  std::int64_t num_steps = 1;  ///< T
  std::int64_t channels = 1;   ///< C, real numbers per node
  bool temporal = false;       ///< C(t) is a sequence, else the same at every step
  bool diagonal = false;       ///< W is diagonal and complex, acting on pairs of channels
  Outputs outputs = Outputs::kLast;
  Ordering ordering = Ordering::kWhereItPays;
  Precision precision = Precision::kFloat32;  ///< kBf16 is for calls in float
  /// Applications of A and W between two inputs: X(t+1) = A^r X(t) W^r + C(t+1).
  std::int64_t hops_per_step = 1;
  /// With a diagonal W: the channels of the whole that these are some of, 0: these are all. What
  /// depends on their number (the order of the nodes) goes by the whole, to the same bits.
  std::int64_t all_channels = 0;

  std::int64_t num_nodes() const { return gso.num_nodes(); }
  bool all_outputs() const { return outputs == Outputs::kAll; }
  /// Numbers in X(t) of one copy, and of the batch.
  std::int64_t block() const { return num_nodes() * channels; }
  std::int64_t state() const { return batch * block(); }
};

/// For whom a gradient will be asked.
struct RecurrenceWanted {
  bool input = false;
  bool w_state = false;
  bool initial = false;
  bool gso_values = false;

  bool any() const { return input || w_state || initial || gso_values; }
};

/// True if a call with Precision::kBf16 rounds anything: dense W always, a diagonal one with a
/// constant input of which the last output is wanted (plan diagonal). A state that takes in
/// something new at every step for long would stand still in 8 bits, so that series with a diagonal
/// W run in float32, and plan spectral keeps no states.
struct RecurrenceCall;
bool runs_in_bf16(const RecurrenceCall& call);

/// One call: the plan must fit (why_not() is empty).
struct RecurrenceCall {
  Plan plan = Plan::kStepwise;
  RecurrenceShape shape;
  bool has_initial = false;
  RecurrenceWanted wanted;
};

template <typename T>
struct RecurrenceInputs {
  const T* input = nullptr;  ///< C: [B, N, C], temporal [B, T, N, C]
  /// [C, C], of groups of channels one after the other; diagonal: C/2 pairs (re, im).
  const T* w_state = nullptr;
  const T* initial = nullptr;  ///< X(0): [B, N, C], if the call has one
};

/// What backward() reads besides the gradient. Of what backward_reads() does not name, nothing has
/// to be kept.
template <typename T>
struct RecurrenceKept {
  RecurrenceInputs<T> inputs;
  const T* output = nullptr;
  const T* saved = nullptr;
};

/// Each written whole if present. gso_values: [nonzeros], in the order of gso.col(); of an operator
/// of low rank, or of groups with one, its factors P and Q, [2, N, rank].
template <typename T>
struct RecurrenceGradients {
  T* input = nullptr;
  T* w_state = nullptr;
  T* initial = nullptr;
  T* gso_values = nullptr;
};

/// Which arguments of forward() backward() looks at; W always.
struct RecurrenceReads {
  bool input = false;
  bool initial = false;
  bool output = false;
};
RecurrenceReads backward_reads(const RecurrenceCall& call);

/// Numbers that forward() leaves for backward() in `saved`. T is float or double here and below.
template <typename T>
std::int64_t saved_size(const RecurrenceCall& call);

/// Bytes of workspace, known before anything runs.
template <typename T>
std::int64_t forward_bytes(const RecurrenceCall& call, std::int64_t workers);
template <typename T>
std::int64_t backward_bytes(const RecurrenceCall& call, std::int64_t workers);

/// Writes X(T) [B, N, C] (kLast) or X(1), ..., X(T) [B, T, N, C] (kAll) to `output`. False if the
/// numbers on the way leave the range of T though the result may not (plan doubling alone): the
/// output is then unspecified and plan stepwise has to be asked.
template <typename T>
[[nodiscard]] bool forward(const RecurrenceCall& call, const RecurrenceInputs<T>& inputs, T* output,
                           T* saved, Workspace workspace, const Executor& executor);

/// `grad` is the gradient of the output. `call` is the one of forward(), or wants less; exactly the
/// gradients that it wants are given.
template <typename T>
void backward(const RecurrenceCall& call, const RecurrenceKept<T>& kept, const T* grad,
              const RecurrenceGradients<T>& gradients, Workspace workspace,
              const Executor& executor);

}  // namespace mpssm::engine
