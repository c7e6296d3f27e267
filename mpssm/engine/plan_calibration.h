// SPDX-License-Identifier: MIT
// Prices of work (engine/plan_costs.h) as this machine has them: plans run on problems of many
// shapes, and the prices that explain their times best are found by least squares.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "mpssm/engine/plan_costs.h"

namespace mpssm::engine {

/// A call of made-up numbers in float, on the calling thread, with all its memory: forward, and
/// backward with gradients of input and W if the query says training. The plan must fit.
class TrialCall {
 public:
  TrialCall(Plan plan, const graph::Gso& gso, const PlanQuery& query);
  ~TrialCall();
  TrialCall(TrialCall&&) noexcept;

  void run();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// Processor time of a call in nanoseconds, the least of `rounds`; short calls are repeated within
/// a round. What other processes do meanwhile hardly counts.
double trial_nanoseconds(TrialCall& call, int rounds);

/// Takes about two seconds of one core.
PlanCosts calibrate_plan_costs();

/// What they depend on, in one line: processor, instruction set, and what the planner counts.
std::string calibration_machine();

}  // namespace mpssm::engine
