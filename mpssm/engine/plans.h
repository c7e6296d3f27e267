// SPDX-License-Identifier: MIT
// What a plan is to recurrence.cpp: one file each, all behind this table.
// Internal to engine/.
#pragma once

#include <cstdint>

#include "mpssm/engine/recurrence.h"

namespace mpssm::engine {

template <typename T>
struct PlanFunctions {
  RecurrenceReads (*reads)(const RecurrenceCall&);
  std::int64_t (*saved_size)(const RecurrenceCall&);
  std::int64_t (*forward_bytes)(const RecurrenceCall&, std::int64_t workers);
  std::int64_t (*backward_bytes)(const RecurrenceCall&, std::int64_t workers);
  bool (*forward)(const RecurrenceCall&, const RecurrenceInputs<T>&, T* output, T* saved,
                  Workspace&, const Executor&);
  void (*backward)(const RecurrenceCall&, const RecurrenceKept<T>&, const T* grad,
                   const RecurrenceGradients<T>&, Workspace&, const Executor&);
};

template <typename T>
PlanFunctions<T> stepwise_plan();
template <typename T>
PlanFunctions<T> doubling_plan(Precision precision);
template <>
PlanFunctions<float> doubling_plan(Precision precision);
template <>
PlanFunctions<double> doubling_plan(Precision precision);
template <typename T>
PlanFunctions<T> diagonal_plan();
/// Plan diagonal on slices of bfloat16: for calls with runs_in_bf16().
PlanFunctions<float> diagonal_bf16_plan();
template <typename T>
PlanFunctions<T> spectral_plan();
/// Plans that take one operator, for calls with one for each group of channels.
template <typename T>
PlanFunctions<T> plan_by_groups();
/// For calls with an operator of low rank, whatever their plan.
template <typename T>
PlanFunctions<T> low_rank_plan();

/// For plans that need nothing of forward() in backward() but what they save, or that save nothing.
inline RecurrenceReads nothing_read(const RecurrenceCall&) { return {}; }
inline std::int64_t nothing_saved(const RecurrenceCall&) { return 0; }

/// Bytes that a struct of buffers takes: it does so in its constructor, and without memory it
/// counts.
template <typename Buffers>
std::int64_t bytes_of(const RecurrenceCall& call, std::int64_t workers) {
  Workspace counter;
  (void)Buffers(call, workers, counter);
  return counter.used();
}

}  // namespace mpssm::engine
