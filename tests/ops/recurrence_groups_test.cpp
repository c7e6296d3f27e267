// SPDX-License-Identifier: MIT
// Operators per group of channels and several hops per step, on tensors: values, gradients,
// instruction sets, errors. Every plan on plain memory: tests/engine/recurrence_test.cpp.
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <torch/torch.h>

#include "mpssm/graph/generators.h"
#include "mpssm/graph/operator_groups.h"
#include "mpssm/kernels/simd.h"
#include "mpssm/ops/recurrence.h"

#include "tests/support/gradcheck.h"
#include "tests/support/tensors.h"

namespace mpssm::ops {
namespace {

using mpssm::testing::close;
using mpssm::testing::expect_gradients;
using mpssm::testing::random_dense_w;
using mpssm::testing::random_sigma;
using mpssm::testing::relative_tolerance;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

graph::Operators three_groups(const char* kinds = "sym_normalized,identity:2,laplacian") {
  return graph::make_operators(graph::make_random_connected(7, 11, 5),
                               graph::gso_groups_from_text(kinds));
}

/// One W after the other, flat.
torch::Tensor dense_of_groups(const graph::Operators& operators, std::int64_t channels,
                              torch::Dtype type) {
  const auto begins = operators.channel_begins(channels);
  std::vector<torch::Tensor> parts;
  for (std::size_t g = 0; g + 1 < begins.size(); ++g) {
    parts.push_back(0.5 * random_dense_w(begins[g + 1] - begins[g], type).flatten());
  }
  return torch::cat(parts);
}

struct GroupedCase {
  Plan plan;
  bool temporal;
  std::int64_t hops_per_step;
};
std::vector<GroupedCase> grouped_cases() {
  std::vector<GroupedCase> cases = {{Plan::kDoubling, false, 1}};
  for (const Plan plan : {Plan::kStepwise, Plan::kDiagonal, Plan::kSpectral}) {
    cases.push_back({plan, false, 1});
    cases.push_back({plan, true, 1});
    cases.push_back({plan, true, 3});
  }
  return cases;
}

RecurrenceResult run_case(const GroupedCase& c, Plan plan, const graph::Operators& operators,
                          const torch::Tensor& u, const RecurrenceWeights& weights,
                          const torch::Tensor& initial) {
  const RecurrenceOptions options{.plan = plan,
                                  .outputs = c.temporal ? Outputs::kAll : Outputs::kLast,
                                  .initial = initial,
                                  .hops_per_step = c.hops_per_step};
  return c.temporal ? recurrence_temporal(operators, u, weights, options)
                    : recurrence_static(operators, u, weights, 4, options);
}

class RecurrenceGroups : public ::testing::TestWithParam<const char*> {};

TEST_P(RecurrenceGroups, EveryPlanIsTheReferenceAtEachInstructionSet) {
  const graph::Operators operators = three_groups(GetParam());
  for (const std::string& target : kernels::simd_targets()) {
    SCOPED_TRACE(target);
    kernels::set_simd_target(target);
    torch::manual_seed(4);
    for (const auto type : {torch::kFloat, torch::kDouble}) {
      for (const std::int64_t channels : {8, 18, 128}) {
        for (const GroupedCase& c : grouped_cases()) {
          SCOPED_TRACE(to_string(c.plan));
          const bool diagonal = c.plan == Plan::kDiagonal || c.plan == Plan::kSpectral;
          std::vector<std::int64_t> sizes = {2, 7, channels};
          const auto initial = torch::randn(sizes, type);
          if (c.temporal) sizes.insert(sizes.begin() + 1, 4);
          const auto u = torch::randn(sizes, type);
          const RecurrenceWeights weights{diagonal ? 0.5 * random_sigma(channels / 2, type)
                                                   : dense_of_groups(operators, channels, type)};
          EXPECT_TRUE(close(run_case(c, c.plan, operators, u, weights, initial).output,
                            run_case(c, Plan::kReference, operators, u, weights, initial).output,
                            relative_tolerance(type)));
        }
      }
    }
  }
  kernels::set_simd_target("");
}

TEST_P(RecurrenceGroups, GradientsAreTheNumericOnes) {
  const graph::Operators operators = three_groups(GetParam());
  for (const GroupedCase& c : grouped_cases()) {
    SCOPED_TRACE(to_string(c.plan));
    torch::manual_seed(2);
    const bool diagonal = c.plan == Plan::kDiagonal || c.plan == Plan::kSpectral;
    std::vector<std::int64_t> sizes = {7, 8};
    const auto initial = torch::randn(sizes, torch::kDouble);
    if (c.temporal) sizes.insert(sizes.begin(), 3);
    const auto u = torch::randn(sizes, torch::kDouble);
    const auto w = diagonal ? torch::view_as_real(0.5 * random_sigma(4, torch::kDouble))
                            : dense_of_groups(operators, 8, torch::kDouble);
    expect_gradients(
        [&](const std::vector<torch::Tensor>& x) {
          const RecurrenceWeights weights{diagonal ? torch::view_as_complex(x[1]) : x[1]};
          return run_case(c, c.plan, operators, x[0], weights, x[2]).output;
        },
        {u, w, initial});
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, RecurrenceGroups,
                         ::testing::Values("sym_normalized,identity:2,laplacian",
                                           "sym_normalized,laplacian:2,sym_normalized",
                                           "virtual_node,sym_normalized:2,virtual_node"));

TEST(RecurrenceOfGroups, FactorsOfLowRankMayBeGiven) {
  graph::GsoGroups kinds = graph::gso_groups_from_text("adaptive,sym_normalized,virtual_node");
  kinds.adaptive_rank = 2;
  const graph::Operators operators = graph::make_operators(
      graph::make_batch(std::vector{graph::make_ring(4), graph::make_ring(3)}), kinds);
  for (const GroupedCase& c : grouped_cases()) {
    SCOPED_TRACE(to_string(c.plan));
    torch::manual_seed(2);
    const bool diagonal = c.plan == Plan::kDiagonal || c.plan == Plan::kSpectral;
    std::vector<std::int64_t> sizes = {2, 7, 8};
    if (c.temporal) sizes.insert(sizes.begin() + 1, 3);
    const auto u = torch::randn(sizes, torch::kDouble);
    const auto w = diagonal ? torch::view_as_real(0.5 * random_sigma(4, torch::kDouble))
                            : dense_of_groups(operators, 8, torch::kDouble);
    const auto by = [&](Plan plan) {
      return [&, plan](const std::vector<torch::Tensor>& x) {
        const RecurrenceWeights weights{diagonal ? torch::view_as_complex(x[1]) : x[1]};
        const RecurrenceOptions options{
            .plan = plan, .hops_per_step = c.hops_per_step, .gso_values = x[2]};
        return c.temporal ? recurrence_temporal(operators, x[0], weights, options).output
                          : recurrence_static(operators, x[0], weights, 4, options).output;
      };
    };
    const std::vector<torch::Tensor> arguments = {u, w,
                                                  0.5 * torch::randn({2, 7, 2}, torch::kDouble)};
    EXPECT_TRUE(close(by(c.plan)(arguments), by(Plan::kReference)(arguments), 1e-12));
    expect_gradients(by(c.plan), arguments);
  }
}

// A(t) for each group: the definition, and pieces that are the whole.
TEST(RecurrenceOfGroups, MayChangeFromStepToStep) {
  torch::manual_seed(6);
  const graph::Operators operators = graph::Operators::sequence(
      {three_groups(), three_groups("random_walk,laplacian:2,adjacency")}, {0, 1, 1, 1, 0, 0}, 3);
  const auto u = torch::randn({2, 3, 7, 8}, torch::kDouble);
  for (const Plan plan : {Plan::kStepwise, Plan::kDiagonal}) {
    SCOPED_TRACE(to_string(plan));
    const RecurrenceWeights weights{plan == Plan::kDiagonal
                                        ? 0.5 * random_sigma(4, torch::kDouble)
                                        : dense_of_groups(operators, 8, torch::kDouble)};
    const auto whole =
        recurrence_temporal(operators, u, weights, {.plan = plan, .outputs = Outputs::kAll});
    EXPECT_TRUE(close(whole.output,
                      recurrence_temporal(operators, u, weights,
                                          {.plan = Plan::kReference, .outputs = Outputs::kAll})
                          .output,
                      1e-12));
    RecurrenceResult piece;
    for (const auto& [begin, end] : {std::pair(0, 1), {1, 3}}) {
      piece = recurrence_temporal(operators.steps(begin, end), u.slice(1, begin, end), weights,
                                  {.plan = plan, .outputs = Outputs::kAll, .initial = piece.state});
      EXPECT_TRUE(close(piece.output, whole.output.slice(1, begin, end), 1e-12));
    }
  }
}

TEST(RecurrenceOfGroups, AutoTakesAPlanThatFitsEveryGroup) {
  torch::manual_seed(2);
  const graph::Operators operators = three_groups("random_walk,identity");
  const auto u = torch::randn({7, 8});
  const RecurrenceWeights weights{0.5 * random_sigma(4, torch::kFloat)};
  EXPECT_TRUE(close(recurrence_static(operators, u, weights, 5, {.operator_calls = 1000}).output,
                    recurrence_static(operators, u, weights, 5, {.plan = Plan::kReference}).output,
                    1e-5));
  EXPECT_THAT([&] { recurrence_static(operators, u, weights, 5, {.plan = Plan::kSpectral}); },
              ThrowsMessage<c10::Error>(HasSubstr("not symmetric")));
}

TEST(RecurrenceOfGroups, RefusesWhatCannotBe) {
  const graph::Operators operators = three_groups();
  const auto u = torch::randn({7, 8});
  const auto sequence = torch::randn({3, 7, 8});
  const RecurrenceWeights diagonal{random_sigma(4, torch::kFloat)};
  EXPECT_THAT([&] { recurrence_static(operators, u, {random_dense_w(8, torch::kFloat)}, 3); },
              ThrowsMessage<c10::Error>(HasSubstr("one for each of 3 groups of channels")));
  EXPECT_THAT(
      [&] {
        recurrence_static(operators, torch::randn({7, 4}), {random_sigma(2, torch::kFloat)}, 3);
      },
      ThrowsMessage<std::invalid_argument>(HasSubstr("each of 3 groups, got 4 channels")));
  EXPECT_THAT(
      [&] { recurrence_temporal(operators, sequence, diagonal, {.gso_values = torch::ones({3})}); },
      ThrowsMessage<c10::Error>(HasSubstr("one operator with gso_values")));
  EXPECT_THAT([&] { recurrence_static(operators, u, diagonal, 3, {.hops_per_step = 2}); },
              ThrowsMessage<c10::Error>(HasSubstr("hops_per_step 1 of a static call")));
  EXPECT_THAT([&] { recurrence_temporal(operators, sequence, diagonal, {.hops_per_step = 0}); },
              ThrowsMessage<c10::Error>(HasSubstr("hops_per_step >= 1")));
}

}  // namespace
}  // namespace mpssm::ops
