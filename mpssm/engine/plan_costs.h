// SPDX-License-Identifier: MIT
// What the planner charges for work, as numbers that can be measured on a machine: a plan's cost is
// so much work of each kind, times the price of that kind.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "mpssm/base/enum_table.h"
#include "mpssm/engine/plan.h"

namespace mpssm::engine {

enum class WorkKind {
  kCall,            ///< a pass, whatever its size
  kTask,            ///< a slice or a block going through a kernel once
  kSliceEntry,      ///< an entry of A met by a slice of channels, beside its numbers
  kSliceNumber,     ///< a number gathered by a slice that the core's own cache holds
  kSliceNumberFar,  ///< the same where it does not
  kSliceRow,        ///< a number of a slice written, with its products with sigma
  kPacked,          ///< a number on its way into a slice or out of it
  kRowEntry,        ///< an entry of A met by whole rows
  kRowNumber,       ///< a number gathered by whole rows that the core's own cache holds
  kRowNumberFar,    ///< the same where it does not
  kBasisEntry,      ///< an entry of an eigenbasis met by whole rows: rows are long, and in order
  kMultiplyAdd,     ///< of a dense product
  kGramAdd,         ///< of the gradient of a weight
  kSeries,          ///< a complex mode and bit of the number of steps
  kScan,            ///< a number of a mode and step
  kNumber,          ///< a number read, changed and written
  kNumberFar,       ///< the same out of the core's own cache
};
inline constexpr base::EnumRow<WorkKind> kWorkKindNames[] = {
    {WorkKind::kCall, "call"},
    {WorkKind::kTask, "task"},
    {WorkKind::kSliceEntry, "slice_entry"},
    {WorkKind::kSliceNumber, "slice_number"},
    {WorkKind::kSliceNumberFar, "slice_number_far"},
    {WorkKind::kSliceRow, "slice_row"},
    {WorkKind::kPacked, "packed"},
    {WorkKind::kRowEntry, "row_entry"},
    {WorkKind::kRowNumber, "row_number"},
    {WorkKind::kRowNumberFar, "row_number_far"},
    {WorkKind::kBasisEntry, "basis_entry"},
    {WorkKind::kMultiplyAdd, "multiply_add"},
    {WorkKind::kGramAdd, "gram_add"},
    {WorkKind::kSeries, "series"},
    {WorkKind::kScan, "scan"},
    {WorkKind::kNumber, "number"},
    {WorkKind::kNumberFar, "number_far"},
};
constexpr base::EnumTable<WorkKind> table_of(WorkKind) { return kWorkKindNames; }
inline constexpr std::size_t kNumWorkKinds = std::size(kWorkKindNames);

/// Amounts of work, or prices of one unit in nanoseconds of one core.
struct PlanWork {
  std::array<double, kNumWorkKinds> of = {};

  double& operator[](WorkKind kind) { return of[static_cast<std::size_t>(kind)]; }
  double operator[](WorkKind kind) const { return of[static_cast<std::size_t>(kind)]; }
  bool operator==(const PlanWork&) const = default;
};
struct PlanCosts : PlanWork {
  bool operator==(const PlanCosts&) const = default;
};

/// How settings name prices: those that come with the library, and those of the machine at hand.
inline constexpr std::string_view kBuiltinCosts = "builtin";
inline constexpr std::string_view kMeasuredCosts = "measured";

/// Those that come with the library: the same plans on every machine.
const PlanCosts& builtin_plan_costs();

/// What `plan` has to do in one call, of training forward and backward; without a decomposition.
PlanWork plan_work(Plan plan, const graph::Gso& gso, const PlanQuery& query);

/// "call=310 task=12.5 ...", all kinds in order. Reading it back gives the same costs.
std::string to_text(const PlanCosts& costs);
/// Throws base::Error that says what is wrong.
PlanCosts plan_costs_from_text(std::string_view text);

}  // namespace mpssm::engine
