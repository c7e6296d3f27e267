// SPDX-License-Identifier: MIT
// Which algorithm runs a recurrence, what it costs, and why it was picked.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "mpssm/base/enum_table.h"
#include "mpssm/engine/precision.h"
#include "mpssm/graph/operators.h"

namespace mpssm::engine {

enum class Plan {
  kAuto,
  kStepwise,   ///< the loop; everything, T states of memory for training
  kDoubling,   ///< static, dense W: S(2m) = S(m) + A^m S(m) W^m; O(log T) products with W
  kDiagonal,   ///< diagonal W: slices of channels go through all steps in cache, no product with W
  kSpectral,   ///< diagonal W, small symmetric graphs: a closed form per mode, any T at one price
  kReference,  ///< plain torch operations, differentiable any number of times
};
inline constexpr base::EnumRow<Plan> kPlanNames[] = {
    {Plan::kAuto, "auto"},         {Plan::kStepwise, "stepwise"}, {Plan::kDoubling, "doubling"},
    {Plan::kDiagonal, "diagonal"}, {Plan::kSpectral, "spectral"}, {Plan::kReference, "reference"},
};
constexpr base::EnumTable<Plan> table_of(Plan) { return kPlanNames; }
constexpr std::string_view to_string(Plan plan) { return table_of(plan).name(plan); }
/// Throws std::invalid_argument listing the names.
inline Plan plan_from_name(std::string_view name) {
  return table_of(Plan{}).from_name("plan_from_name", name);
}

enum class Outputs {
  kLast,  ///< X(T) alone
  kAll,   ///< X(1), ..., X(T)
};

struct PlanCosts;  // engine/plan_costs.h

/// What the planner looks at.
struct PlanQuery {
  std::int64_t batch = 1;
  std::int64_t num_steps = 1;
  std::int64_t channels = 1;  ///< real numbers per node
  bool temporal = false;
  bool diagonal = false;  ///< W is diagonal
  Outputs outputs = Outputs::kLast;
  bool training = false;    ///< gradients will be asked for
  bool gso_values = false;  ///< A's entries are an argument of the call
  bool sequence = false;    ///< A changes from step to step
  std::int64_t element_size = 4;
  /// Calls that will see the same operator and can share its eigenbasis, this one included. Said by
  /// the caller, not counted: a plan must not depend on what was called before.
  std::int64_t operator_calls = 1;
  /// The operator brings its eigenbasis along (graph::give_eigen_basis): it costs nothing more, and
  /// its parts need not be looked at.
  bool has_basis = false;
  std::int64_t workers = 1;  ///< threads of the call: each needs memory of its own
  Precision precision = Precision::kFloat32;
  std::int64_t hops_per_step = 1;    ///< applications of A and W between two inputs
  const PlanCosts* costs = nullptr;  ///< prices of work; null: builtin_plan_costs()
};

// Of operators per group of channels, each group is a problem of its own; one plan runs all but
// those of low rank, which have a way of their own.

/// The plan with the least estimated cost among those that fit. Never kAuto or kReference.
Plan choose_plan(const graph::Operators& gso, const PlanQuery& query);

/// Empty if `plan` can run the query, else the reason why not, as a phrase.
std::string why_not(Plan plan, const graph::Operators& gso, const PlanQuery& query);

/// Nanoseconds that one core would take for the call (engine/plan_costs.h), of training for both
/// passes, with its share of a decomposition. Whatever the number of threads: the plan, and with it
/// the bits, must not depend on it.
double plan_cost(Plan plan, const graph::Operators& gso, const PlanQuery& query);

/// Bytes a call holds at its peak beyond its arguments, output included; with `training` what it
/// keeps for the backward pass as well.
std::int64_t plan_memory(Plan plan, const graph::Operators& gso, const PlanQuery& query);

/// True if each group of channels is run by itself on a copy of them: all plans but diagonal do so,
/// and that one where a group has low rank.
bool runs_by_groups(Plan plan, const graph::Operators& gso);

/// One line per plan: cost and memory, or why it does not fit, and the choice marked.
std::string explain_plan(const graph::Operators& gso, const PlanQuery& query);

}  // namespace mpssm::engine
