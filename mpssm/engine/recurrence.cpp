// SPDX-License-Identifier: MIT
#include "mpssm/engine/recurrence.h"

#include <fmt/core.h>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "mpssm/engine/plans.h"

namespace mpssm::engine {
namespace {

template <typename T>
PlanFunctions<T> functions_of(const RecurrenceCall& call) {
  if (std::is_same_v<T, double> && call.shape.precision != Precision::kFloat32) {
    throw std::invalid_argument("recurrence: bf16 is for float32, got float64");
  }
  if (call.wanted.gso_values && call.shape.gso.is_sequence()) {
    throw std::invalid_argument("recurrence: a sequence of graphs has no gradient of its entries");
  }
  if (runs_by_groups(call.plan, call.shape.gso)) return plan_by_groups<T>();
  if (call.shape.gso.has_low_rank()) return low_rank_plan<T>();
  switch (call.plan) {
    case Plan::kStepwise:
      return stepwise_plan<T>();
    case Plan::kDoubling:
      return doubling_plan<T>(call.shape.precision);
    case Plan::kDiagonal:
      if (call.wanted.gso_values &&
          (call.shape.hops_per_step > 1 || call.shape.gso.num_groups() > 1)) {
        throw std::invalid_argument(
            "recurrence: plan diagonal has a gradient of the entries for one operator and one hop "
            "per step");
      }
      if constexpr (std::is_same_v<T, float>) {
        if (runs_in_bf16(call)) {
          if (call.wanted.gso_values) {
            throw std::invalid_argument(
                "recurrence: plan diagonal has no gradient of the entries in bf16");
          }
          return diagonal_bf16_plan();
        }
      }
      return diagonal_plan<T>();
    case Plan::kSpectral:
      return spectral_plan<T>();
    case Plan::kAuto:
    case Plan::kReference:
      break;
  }
  throw std::invalid_argument(
      fmt::format("recurrence: the engine has no plan named {}", to_string(call.plan)));
}

}  // namespace

bool runs_in_bf16(const RecurrenceCall& call) {
  if (call.shape.precision != Precision::kBf16) return false;
  if (!call.shape.diagonal) return true;
  return call.plan == Plan::kDiagonal && !call.shape.temporal && !call.shape.all_outputs() &&
         !call.has_initial && call.shape.hops_per_step == 1;
}

RecurrenceReads backward_reads(const RecurrenceCall& call) {
  return functions_of<float>(call).reads(call);
}

template <typename T>
std::int64_t saved_size(const RecurrenceCall& call) {
  return functions_of<T>(call).saved_size(call);
}

template <typename T>
std::int64_t forward_bytes(const RecurrenceCall& call, std::int64_t workers) {
  return functions_of<T>(call).forward_bytes(call, workers);
}

template <typename T>
std::int64_t backward_bytes(const RecurrenceCall& call, std::int64_t workers) {
  return functions_of<T>(call).backward_bytes(call, workers);
}

template <typename T>
bool forward(const RecurrenceCall& call, const RecurrenceInputs<T>& inputs, T* output, T* saved,
             Workspace workspace, const Executor& executor) {
  return functions_of<T>(call).forward(call, inputs, output, saved, workspace, executor);
}

template <typename T>
void backward(const RecurrenceCall& call, const RecurrenceKept<T>& kept, const T* grad,
              const RecurrenceGradients<T>& gradients, Workspace workspace,
              const Executor& executor) {
  functions_of<T>(call).backward(call, kept, grad, gradients, workspace, executor);
}

#define MPSSM_INSTANTIATE(T)                                                                     \
  template std::int64_t saved_size<T>(const RecurrenceCall&);                                    \
  template std::int64_t forward_bytes<T>(const RecurrenceCall&, std::int64_t);                   \
  template std::int64_t backward_bytes<T>(const RecurrenceCall&, std::int64_t);                  \
  template bool forward<T>(const RecurrenceCall&, const RecurrenceInputs<T>&, T*, T*, Workspace, \
                           const Executor&);                                                     \
  template void backward<T>(const RecurrenceCall&, const RecurrenceKept<T>&, const T*,           \
                            const RecurrenceGradients<T>&, Workspace, const Executor&);
MPSSM_INSTANTIATE(float)
MPSSM_INSTANTIATE(double)
#undef MPSSM_INSTANTIATE

}  // namespace mpssm::engine
