// SPDX-License-Identifier: MIT
#include "mpssm/engine/plan.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <fmt/core.h>
#include <span>
#include <vector>

#include "mpssm/engine/plan_costs.h"
#include "mpssm/engine/state_replay.h"
#include "mpssm/graph/order.h"
#include "mpssm/graph/spectrum.h"

namespace mpssm::engine {
namespace {

constexpr std::array kPlans = {Plan::kStepwise, Plan::kDoubling, Plan::kDiagonal, Plan::kSpectral};

// Nanoseconds per entry of the basis and node of the largest part; by Eigen, in double.
constexpr double kDecomposition = 2.0;
// Steps up to which the loop has nothing to lose.
constexpr std::int64_t kFewSteps = 3;
// In bfloat16, of a multiply-add in float: where the CPU has the instructions, and taken so
// everywhere, because a plan must not depend on the machine.
constexpr double kBf16Product = 0.5;
constexpr double kBf16Hop = 0.6;
// Larger parts than this cost minutes to decompose: never chosen unasked.
constexpr std::int64_t kMaxAutoBlock = 1024;
constexpr const char* kSequence =
    "A changes from step to step, which only plans stepwise and diagonal take";
constexpr const char* kGivenEntries =
    "gso_values are given, which only plans stepwise and diagonal take";

std::int64_t largest_part(std::span<const std::int64_t> graph_ptr) {
  std::int64_t largest = 0;
  for (std::size_t g = 0; g + 1 < graph_ptr.size(); ++g) {
    largest = std::max(largest, graph_ptr[g + 1] - graph_ptr[g]);
  }
  return largest;
}

/// Products with W that doubling needs for this many steps.
std::int64_t num_moves(std::int64_t num_steps) {
  const auto bits = static_cast<std::uint64_t>(num_steps);
  return (63 - std::countl_zero(bits)) + std::popcount(bits) - 1;
}

std::string why_not_one(Plan plan, const graph::Gso& gso, const PlanQuery& query) {
  const auto needs_diagonal = [&]() -> std::string {
    if (!query.diagonal) return "W is dense and the plan needs a diagonal one (see diagonalise)";
    return {};
  };
  switch (plan) {
    case Plan::kDoubling:
      if (query.diagonal) return "W is diagonal and the plan needs a dense one";
      if (query.sequence) return kSequence;
      if (query.temporal) return "the input is a sequence and the plan needs a constant one";
      if (query.outputs == Outputs::kAll)
        return "all outputs are asked for and the plan skips most";
      if (query.gso_values) return kGivenEntries;
      if (query.hops_per_step > 1) return "the plan has one hop per step";
      return {};
    case Plan::kDiagonal:
      if (query.diagonal && query.gso_values && query.hops_per_step > 1) {
        return "gso_values are given for several hops per step, which only plan stepwise takes";
      }
      return needs_diagonal();
    case Plan::kSpectral: {
      if (std::string reason = needs_diagonal(); !reason.empty()) return reason;
      if (query.sequence) return kSequence;
      if (query.gso_values) return kGivenEntries;
      if (query.has_basis) return {};
      if (!gso.is_symmetric()) return "the operator is not symmetric";
      const std::int64_t part = largest_part(gso.graph_ptr());
      if (part > graph::kMaxEigenBlock) {
        return fmt::format("a graph has {} nodes and the eigenbasis takes at most {}", part,
                           graph::kMaxEigenBlock);
      }
      return {};
    }
    default:
      return {};
  }
}

double cost_of_one(Plan plan, const graph::Gso& gso, const PlanQuery& query) {
  const PlanCosts& costs = query.costs == nullptr ? builtin_plan_costs() : *query.costs;
  PlanWork work = plan_work(plan, gso, query);
  if (query.precision == Precision::kBf16) {
    work[WorkKind::kMultiplyAdd] *= kBf16Product;
    work[WorkKind::kGramAdd] *= kBf16Product;
    if (!query.temporal && query.outputs != Outputs::kAll) {
      work[WorkKind::kSliceNumber] *= kBf16Hop;
      work[WorkKind::kSliceNumberFar] *= kBf16Hop;
    }
  }
  double nanoseconds = 0.0;
  for (std::size_t i = 0; i < kNumWorkKinds; ++i) nanoseconds += work.of[i] * costs.of[i];
  if (plan == Plan::kSpectral && !query.has_basis) {
    nanoseconds += kDecomposition * static_cast<double>(graph::eigen_basis_nonzeros(gso)) *
                   static_cast<double>(largest_part(gso.graph_ptr())) /
                   static_cast<double>(std::max<std::int64_t>(query.operator_calls, 1));
  }
  return nanoseconds;
}

std::int64_t memory_of_one(Plan plan, const graph::Gso& gso, const PlanQuery& query) {
  const std::int64_t state = query.batch * gso.num_nodes() * query.channels * query.element_size;
  const std::int64_t output = query.outputs == Outputs::kAll ? query.num_steps * state : state;
  const bool sequence = query.temporal || query.outputs == Outputs::kAll;
  // Of a large operator a copy in another order of its nodes, if that should pay.
  const std::int64_t ordered = gso.num_nodes() >= graph::kLeastOrderedNodes
                                   ? graph::ordered_bytes(gso, query.element_size)
                                   : 0;
  switch (plan) {
    case Plan::kDoubling:
      // Forward holds C, S and one buffer; training keeps S before each move and has five buffers.
      return (query.training ? num_moves(query.num_steps) + 5 : 3) * state /
                 (query.precision == Precision::kBf16 ? 2 : 1) +
             ordered;
    case Plan::kDiagonal: {
      // A thread holds so many slices; training adds the gradient of the input.
      // The gradient of given entries walks to states again, and is kept by each thread.
      std::int64_t each = query.outputs == Outputs::kAll ? 5 : 4;
      std::int64_t entries = 0;
      if (query.gso_values && query.training) {
        if (query.outputs == Outputs::kLast) each += ReplayLayout(query.num_steps - 1).kept() + 1;
        entries = (query.workers + 1) * gso.num_nonzeros() * query.element_size;
      }
      const std::int64_t slices = query.workers * each * gso.num_nodes() * 128;
      return output + ordered + std::min(each * state, slices) + entries +
             (query.training ? (query.temporal ? query.num_steps : 1) * state : 0);
    }
    case Plan::kSpectral:
      return output + (sequence ? query.num_steps : 1) * state * (query.training ? 3 : 2) +
             4 * query.element_size * graph::eigen_basis_nonzeros(gso);
    default:
      // States between two inputs are made again, one step's at a time.
      return output + (query.training ? query.num_steps + 8 + query.hops_per_step - 1
                                      : 3 + (query.hops_per_step > 1 ? 1 : 0)) *
                          state;
  }
}

/// Calls visit(operator, query) for every group of channels.
template <typename Visit>
void for_groups(const graph::Operators& gso, const PlanQuery& query, const Visit& visit) {
  if (gso.is_single()) return visit(gso.only(), query);
  const std::vector<std::int64_t> begins = gso.channel_begins(query.channels);
  for (std::int64_t g = 0; g < gso.num_groups(); ++g) {
    PlanQuery of_group = query;
    of_group.channels = begins[g + 1] - begins[g];
    if (gso.is_low_rank(g)) {
      visit(gso.low_rank(g), of_group);
    } else {
      visit(gso.of_group(g), of_group);
    }
  }
}

// Of low rank, one way runs all plans (engine/low_rank.cpp).

std::string why_not_one(Plan, const graph::LowRankOperator&, const PlanQuery&) { return {}; }

/// The recurrence among the virtual nodes.
PlanQuery among_virtual(const PlanQuery& query) {
  PlanQuery among = query;
  among.temporal = true;
  among.num_steps = query.num_steps * query.hops_per_step;
  among.hops_per_step = 1;
  among.precision = Precision::kFloat32;
  return among;
}

Plan plan_among(const PlanQuery& query) {
  return query.diagonal ? Plan::kDiagonal : Plan::kStepwise;
}

/// Copies of X that come in and go out.
std::int64_t steps_in_and_out(const PlanQuery& query) {
  return (query.temporal ? query.num_steps : 1) +
         (query.outputs == Outputs::kAll ? query.num_steps : 1);
}

/// The same in every plan, so that it never decides between them.
double cost_of_one(Plan, const graph::LowRankOperator& a, const PlanQuery& query) {
  const PlanCosts& costs = query.costs == nullptr ? builtin_plan_costs() : *query.costs;
  // What several cores share: numbers beyond it come from memory.
  constexpr double kSharedBytes = 16 << 20;
  const double numbers =
      static_cast<double>(steps_in_and_out(query) * query.batch * a.num_nodes() * query.channels);
  const bool is_far = numbers * static_cast<double>(query.element_size) > kSharedBytes;
  // Each number that comes in or goes out is moved, and meets the factors of its node: prices as
  // of two products, by measurements from rank 1 to 10.
  const double of_number = 2.0 * costs[is_far ? WorkKind::kNumberFar : WorkKind::kRowNumber] +
                           2.0 * static_cast<double>(a.rank()) * costs[WorkKind::kMultiplyAdd];
  return (query.training ? 2.0 : 1.0) * of_number * numbers +
         cost_of_one(plan_among(query), a.among_virtual(), among_virtual(query));
}

std::int64_t memory_of_one(Plan, const graph::LowRankOperator& a, const PlanQuery& query) {
  const std::int64_t state = query.batch * a.num_nodes() * query.channels * query.element_size;
  return (query.training ? steps_in_and_out(query) : 1) * state +
         memory_of_one(plan_among(query), a.among_virtual(), among_virtual(query));
}

/// What runs by groups copies so many numbers.
std::int64_t copied_numbers(const graph::Operators& gso, const PlanQuery& query) {
  return steps_in_and_out(query) * query.batch * gso.num_nodes() * query.channels;
}

bool all_symmetric(const graph::Operators& gso) {
  bool all = true;
  for (std::int64_t g = 0; g < gso.num_groups(); ++g) {
    all = all && (gso.is_low_rank(g) || gso.of_group(g).is_symmetric());
  }
  return all;
}

}  // namespace

bool runs_by_groups(Plan plan, const graph::Operators& gso) {
  return gso.num_groups() > 1 && (plan != Plan::kDiagonal || gso.has_low_rank());
}

std::string why_not(Plan plan, const graph::Operators& gso, const PlanQuery& query) {
  if (gso.is_single()) return why_not_one(plan, gso.only(), query);
  if (query.gso_values) return "gso_values are given, which groups of channels do not take";
  std::string reason;
  for_groups(gso, query, [&](const auto& one, const PlanQuery& of_group) {
    if (reason.empty()) reason = why_not_one(plan, one, of_group);
  });
  return reason;
}

double plan_cost(Plan plan, const graph::Operators& gso, const PlanQuery& query) {
  double nanoseconds = 0.0;
  for_groups(gso, query, [&](const auto& one, const PlanQuery& of_group) {
    nanoseconds += cost_of_one(plan, one, of_group);
  });
  if (runs_by_groups(plan, gso)) {
    const PlanCosts& costs = query.costs == nullptr ? builtin_plan_costs() : *query.costs;
    nanoseconds += (query.training ? 2.0 : 1.0) * costs[WorkKind::kNumberFar] *
                   static_cast<double>(copied_numbers(gso, query));
  }
  return nanoseconds;
}

std::int64_t plan_memory(Plan plan, const graph::Operators& gso, const PlanQuery& query) {
  std::int64_t bytes = 0;
  for_groups(gso, query, [&](const auto& one, const PlanQuery& of_group) {
    bytes += memory_of_one(plan, one, of_group);
  });
  if (runs_by_groups(plan, gso)) {
    bytes += (query.training ? 2 : 1) * query.element_size * copied_numbers(gso, query);
  }
  return bytes;
}

Plan choose_plan(const graph::Operators& gso, const PlanQuery& query) {
  // No strings here: this runs in every call.
  if (query.gso_values && query.hops_per_step > 1) return Plan::kStepwise;
  if (!query.diagonal) {
    if (query.gso_values || query.sequence) return Plan::kStepwise;
    // Up to T = 3 doubling takes as many products with W as the loop does.
    const bool fits = !query.temporal && query.outputs == Outputs::kLast &&
                      query.num_steps > kFewSteps && query.hops_per_step == 1;
    return fits && plan_cost(Plan::kDoubling, gso, query) < plan_cost(Plan::kStepwise, gso, query)
               ? Plan::kDoubling
               : Plan::kStepwise;
  }
  Plan best = Plan::kDiagonal;
  double least = plan_cost(best, gso, query);
  const auto consider = [&](Plan plan) {
    const double cost = plan_cost(plan, gso, query);
    if (cost >= least) return;
    best = plan;
    least = cost;
  };
  // Of a sequence every step is there anyway; of constant input the loop would keep T states.
  if (query.temporal || query.num_steps <= kFewSteps) consider(Plan::kStepwise);
  if (query.gso_values || query.sequence) return best;
  if (query.has_basis || (all_symmetric(gso) && largest_part(gso.graph_ptr()) <= kMaxAutoBlock)) {
    consider(Plan::kSpectral);
  }
  return best;
}

std::string explain_plan(const graph::Operators& gso, const PlanQuery& query) {
  const Plan chosen = choose_plan(gso, query);
  std::string text;
  for (const Plan plan : kPlans) {
    text += fmt::format("{} {:<10}", plan == chosen ? '*' : ' ', to_string(plan));
    if (const std::string reason = why_not(plan, gso, query); !reason.empty()) {
      text += "no: " + reason + "\n";
      continue;
    }
    text += fmt::format("{:.3g} ms of one core, {:.3g} MiB{}\n", 1e-6 * plan_cost(plan, gso, query),
                        static_cast<double>(plan_memory(plan, gso, query)) / (1024.0 * 1024.0),
                        plan == chosen ? "  <- least cost" : "");
  }
  return text;
}

}  // namespace mpssm::engine
