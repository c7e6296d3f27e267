// SPDX-License-Identifier: MIT
// Every plan against the definition: values, gradients, threads, instruction sets, errors.
#include "mpssm/ops/recurrence.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <torch/torch.h>

#include "mpssm/graph/generators.h"
#include "mpssm/kernels/simd.h"
#include "mpssm/ops/reference.h"

#include "tests/support/gradcheck.h"
#include "tests/support/operators.h"
#include "tests/support/tensors.h"

namespace mpssm::ops {
namespace {

using mpssm::testing::awkward_operators;
using mpssm::testing::close;
using mpssm::testing::expect_gradients;
using mpssm::testing::random_dense_w;
using mpssm::testing::random_sigma;
using mpssm::testing::relative_tolerance;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

enum class Input { kStatic, kTemporal };
enum class Start { kZero, kGiven };

struct Case {
  Plan plan;
  Input input;
  Outputs outputs;
  Start start;
};

bool is_diagonal(Plan plan) { return plan == Plan::kDiagonal || plan == Plan::kSpectral; }

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const Plan plan : {Plan::kStepwise, Plan::kDoubling, Plan::kDiagonal, Plan::kSpectral}) {
    for (const Input input : {Input::kStatic, Input::kTemporal}) {
      for (const Outputs outputs : {Outputs::kLast, Outputs::kAll}) {
        for (const Start start : {Start::kZero, Start::kGiven}) {
          const bool fits =
              plan != Plan::kDoubling || (input == Input::kStatic && outputs == Outputs::kLast);
          if (fits) cases.push_back({plan, input, outputs, start});
        }
      }
    }
  }
  return cases;
}

std::string describe(const Case& c) {
  return std::string(to_string(c.plan)) + (c.input == Input::kStatic ? " static" : " temporal") +
         (c.outputs == Outputs::kLast ? " last" : " all") +
         (c.start == Start::kZero ? "" : " from X(0)");
}

torch::Tensor run(const Case& c, const graph::Gso& gso, const torch::Tensor& u,
                  const torch::Tensor& w, std::int64_t steps, const torch::Tensor& initial,
                  Plan plan) {
  const RecurrenceOptions options{.plan = plan,
                                  .outputs = c.outputs,
                                  .initial = c.start == Start::kGiven ? initial : torch::Tensor()};
  return c.input == Input::kStatic ? recurrence_static(gso, u, {w}, steps, options).output
                                   : recurrence_temporal(gso, u, {w}, options).output;
}

void expect_equals_reference(const graph::Gso& gso, std::int64_t batch, std::int64_t hops,
                             std::int64_t c, torch::Dtype type) {
  const std::int64_t steps = hops + 1;
  for (const bool diagonal : {false, true}) {
    const std::int64_t channels = diagonal ? 2 * c : c;
    const auto w = diagonal ? random_sigma(c, type) : random_dense_w(c, type);
    const auto u = torch::randn({batch, steps, gso.num_nodes(), channels}, type);
    const auto initial = torch::randn({batch, gso.num_nodes(), channels}, type);
    for (const Case& each : all_cases()) {
      if (each.plan != Plan::kStepwise && is_diagonal(each.plan) != diagonal) continue;
      if (each.plan == Plan::kSpectral && !gso.is_symmetric()) continue;
      SCOPED_TRACE(describe(each) + (diagonal ? ", diagonal" : ", dense"));
      const auto input = each.input == Input::kStatic ? u.select(1, 0) : u;
      EXPECT_TRUE(close(run(each, gso, input, w, steps, initial, each.plan),
                        run(each, gso, input, w, steps, initial, Plan::kReference),
                        relative_tolerance(type)));
    }
  }
}

class RecurrenceByHops : public ::testing::TestWithParam<std::int64_t> {};
INSTANTIATE_TEST_SUITE_P(Hops, RecurrenceByHops, ::testing::Values(0, 1, 2, 3, 7, 8, 16, 100));

TEST_P(RecurrenceByHops, EveryPlanEqualsReferenceOnAwkwardGraphsInDouble) {
  torch::manual_seed(1);
  for (const auto& [name, gso] : awkward_operators()) {
    for (const std::int64_t c : {1, 2, 7, 16, 33, 64}) {
      SCOPED_TRACE(name + ", c = " + std::to_string(c));
      expect_equals_reference(gso, 1, GetParam(), c, torch::kDouble);
    }
  }
}

TEST_P(RecurrenceByHops, EveryPlanEqualsReferenceOnAwkwardGraphsInFloat) {
  torch::manual_seed(2);
  for (const auto& [name, gso] : awkward_operators()) {
    for (const std::int64_t c : {1, 2, 7, 16, 33, 64}) {
      SCOPED_TRACE(name + ", c = " + std::to_string(c));
      expect_equals_reference(gso, 1, GetParam(), c, torch::kFloat);
    }
  }
}

TEST(Recurrence, EveryPlanTakesBatchesOfWindows) {
  torch::manual_seed(3);
  const auto gso = graph::make_gso(graph::make_random_connected(13, 24, 3));
  expect_equals_reference(gso, 5, 6, 9, torch::kDouble);
}

TEST(Recurrence, EverySimdTargetGivesTheReference) {
  const auto gso = graph::make_gso(graph::make_random_connected(23, 60, 5));
  for (const std::string& target : kernels::simd_targets()) {
    SCOPED_TRACE(target);
    kernels::set_simd_target(target);
    ASSERT_EQ(kernels::active_simd_target(), target);
    torch::manual_seed(4);
    for (const std::int64_t c : {1, 3, 7, 8, 9, 15, 16, 17, 31, 33, 64}) {
      SCOPED_TRACE("c = " + std::to_string(c));
      expect_equals_reference(gso, 1, 5, c, torch::kDouble);
      expect_equals_reference(gso, 1, 5, c, torch::kFloat);
    }
  }
  kernels::set_simd_target("");
}

TEST(Recurrence, GradientsOfEveryPlanAreTheNumericOnes) {
  const auto connected = graph::make_gso(graph::make_random_connected(5, 7, 3));
  const auto directed = mpssm::testing::awkward_operators()[5].gso;
  ASSERT_FALSE(directed.is_symmetric());
  for (const auto& gso : {connected, directed}) {
    for (const Case& each : all_cases()) {
      if (each.plan == Plan::kSpectral && !gso.is_symmetric()) continue;
      for (const bool diagonal : {false, true}) {
        if (each.plan != Plan::kStepwise && is_diagonal(each.plan) != diagonal) continue;
        for (const std::int64_t steps : {1, 2, 3, 6, 7}) {
          SCOPED_TRACE(describe(each) + ", steps = " + std::to_string(steps));
          torch::manual_seed(5);
          const std::int64_t n = gso.num_nodes();
          const auto u = each.input == Input::kStatic
                             ? torch::randn({2, n, 3}, torch::kDouble)
                             : torch::randn({2, steps, n, 3}, torch::kDouble);
          const auto w = diagonal ? torch::view_as_real(random_sigma(2, torch::kDouble))
                                  : random_dense_w(4, torch::kDouble);
          const auto b = torch::randn({3, 4}, torch::kDouble);
          const auto initial = torch::randn({2, n, 4}, torch::kDouble);
          std::vector<torch::Tensor> inputs = {u, w, b};
          if (each.start == Start::kGiven) inputs.push_back(initial);
          expect_gradients(
              [&](const std::vector<torch::Tensor>& x) {
                const RecurrenceWeights weights{diagonal ? torch::view_as_complex(x[1]) : x[1],
                                                x[2]};
                const RecurrenceOptions options{.plan = each.plan,
                                                .outputs = each.outputs,
                                                .initial = x.size() > 3 ? x[3] : torch::Tensor()};
                return each.input == Input::kStatic
                           ? recurrence_static(gso, x[0], weights, steps, options).output
                           : recurrence_temporal(gso, x[0], weights, options).output;
              },
              inputs);
        }
      }
    }
  }
}

TEST(Recurrence, DifferentiatesTheEntriesOfTheOperator) {
  const auto gso = mpssm::testing::awkward_operators()[5].gso;
  for (const auto& [plan, diagonal] :
       {std::pair(Plan::kStepwise, false), {Plan::kStepwise, true}, {Plan::kDiagonal, true}}) {
    torch::manual_seed(6);
    const auto values = torch::rand({gso.num_nonzeros()}, torch::kDouble);
    const auto u = torch::randn({2, 4, gso.num_nodes(), 4}, torch::kDouble);
    const auto w = diagonal ? random_sigma(2, torch::kDouble) : random_dense_w(4, torch::kDouble);
    for (const Outputs outputs : {Outputs::kLast, Outputs::kAll}) {
      const auto with_plan = [&](Plan which) {
        return [&, which](const std::vector<torch::Tensor>& x) {
          return recurrence_temporal(gso, x[1], {w},
                                     {.plan = which, .outputs = outputs, .gso_values = x[0]})
              .output;
        };
      };
      EXPECT_TRUE(
          close(with_plan(plan)({values, u}), with_plan(Plan::kReference)({values, u}), 1e-12));
      expect_gradients(with_plan(plan), {values, u});
    }
  }
}

// Only what is asked for is computed, and asking for less must not change the rest.
TEST(Recurrence, GradientsDoNotDependOnWhichOthersAreWanted) {
  const auto gso = graph::make_gso(graph::make_random_connected(9, 14, 3));
  for (const Case& each : all_cases()) {
    SCOPED_TRACE(describe(each));
    torch::manual_seed(8);
    const std::int64_t steps = 5;
    const auto u = each.input == Input::kStatic ? torch::randn({9, 6}, torch::kDouble)
                                                : torch::randn({steps, 9, 6}, torch::kDouble);
    const auto w = is_diagonal(each.plan) ? random_sigma(3, torch::kDouble)
                                          : random_dense_w(6, torch::kDouble);
    const auto initial = torch::randn({9, 6}, torch::kDouble);
    const std::vector<torch::Tensor> values = {u, w, initial};
    const auto gradients_for = [&](int wanted, Plan plan) {
      std::vector<torch::Tensor> leaves;
      for (int i = 0; i < 3; ++i) {
        leaves.push_back(values[i].detach().clone().requires_grad_((wanted >> i & 1) != 0));
      }
      const auto out = run(each, gso, leaves[0], leaves[1], steps, leaves[2], plan);
      (out * out).sum().backward();
      return leaves;
    };
    const int all = each.start == Start::kGiven ? 7 : 3;
    const auto expected = gradients_for(all, Plan::kReference);
    for (int wanted = 1; wanted <= all; ++wanted) {
      const auto actual = gradients_for(wanted, each.plan);
      for (int i = 0; i < 3; ++i) {
        ASSERT_EQ(actual[i].grad().defined(), (wanted >> i & 1) != 0);
        if (actual[i].grad().defined()) {
          EXPECT_TRUE(close(actual[i].grad(), expected[i].grad(), 1e-10)) << "input " << i;
        }
      }
    }
  }
}

TEST(Recurrence, ASequenceInPiecesEqualsTheSequenceAtOnce) {
  const auto gso = graph::make_gso(graph::make_random_connected(13, 24, 3));
  for (const Case& each : all_cases()) {
    SCOPED_TRACE(describe(each));
    torch::manual_seed(9);
    const auto w = is_diagonal(each.plan) ? random_sigma(4, torch::kDouble)
                                          : random_dense_w(8, torch::kDouble);
    const auto u = torch::randn({11, 13, 8}, torch::kDouble);
    torch::Tensor state;
    torch::Tensor whole;
    const RecurrenceOptions first{.plan = each.plan};
    if (each.input == Input::kTemporal) {
      const auto head = recurrence_temporal(gso, u.slice(0, 0, 4), {w}, first);
      state =
          recurrence_temporal(gso, u.slice(0, 4), {w}, {.plan = each.plan, .initial = head.state})
              .state;
      whole = recurrence_temporal(gso, u, {w}, first).state;
    } else {
      const auto head = recurrence_static(gso, u[0], {w}, 4, first);
      state =
          recurrence_static(gso, u[0], {w}, 7, {.plan = each.plan, .initial = head.state}).state;
      whole = recurrence_static(gso, u[0], {w}, 11, first).state;
    }
    EXPECT_TRUE(close(state, whole, 1e-12));
  }
}

TEST(Recurrence, NonContiguousArgumentsGiveTheSame) {
  const auto gso = graph::make_gso(graph::make_random_connected(13, 24, 3));
  torch::manual_seed(10);
  const auto u = torch::randn({8, 13, 4}, torch::kDouble).transpose(0, 2);
  const auto w = random_dense_w(8, torch::kDouble);
  for (const Plan plan : {Plan::kStepwise, Plan::kDoubling}) {
    EXPECT_TRUE(close(
        recurrence_static(gso, u, {w.t()}, 5, {.plan = plan}).output,
        recurrence_static(gso, u.contiguous(), {w.t().contiguous()}, 5, {.plan = Plan::kReference})
            .output,
        1e-12));
  }
}

TEST(Recurrence, ArgumentsAreLeftAlone) {
  const auto gso = graph::make_gso(graph::make_random_connected(13, 24, 3));
  for (const Case& each : all_cases()) {
    SCOPED_TRACE(describe(each));
    for (const std::int64_t steps : {1, 2, 3, 4}) {
      torch::manual_seed(11);
      const auto u =
          each.input == Input::kStatic ? torch::randn({13, 4}) : torch::randn({steps, 13, 4});
      const auto w = is_diagonal(each.plan) ? random_sigma(2, torch::kFloat)
                                            : random_dense_w(4, torch::kFloat);
      const auto initial = torch::randn({13, 4});
      const auto before = u.clone();
      const auto initial_before = initial.clone();
      auto out = run(each, gso, u, w, steps, initial, each.plan);
      EXPECT_TRUE(torch::equal(u, before));
      EXPECT_TRUE(torch::equal(initial, initial_before));
      out.zero_();  // the result is the caller's own
      EXPECT_TRUE(torch::equal(u, before));
      EXPECT_TRUE(torch::equal(initial, initial_before));
    }
  }
}

TEST(Recurrence, ResultsCanBeChangedInPlaceAndStillDifferentiated) {
  const auto gso = graph::make_gso(graph::make_random_connected(13, 24, 3));
  for (const Case& each : all_cases()) {
    // All outputs may be kept for the backward pass, and torch then says so.
    if (each.outputs == Outputs::kAll) continue;
    SCOPED_TRACE(describe(each));
    const auto u = each.input == Input::kStatic ? torch::ones({13, 32}) : torch::ones({3, 13, 32});
    const auto w = is_diagonal(each.plan) ? random_sigma(16, torch::kFloat)
                                          : random_dense_w(32, torch::kFloat);
    auto leaf = u.clone().requires_grad_();
    auto out = run(each, gso, leaf, w, 3, torch::ones({13, 32}), each.plan);
    out.mul_(2);
    out.sum().backward();
    auto plain = u.clone().requires_grad_();
    (2 * run(each, gso, plain, w, 3, torch::ones({13, 32}), Plan::kReference)).sum().backward();
    EXPECT_TRUE(close(leaf.grad(), plain.grad(), 1e-4));
  }
}

/// Gradients of a sum of squares, and the output.
std::vector<torch::Tensor> trained(const graph::Gso& gso, const torch::Tensor& u,
                                   const torch::Tensor& w, std::int64_t steps,
                                   const RecurrenceOptions& options) {
  auto leaf = u.detach().clone().requires_grad_();
  auto weight = w.detach().clone().requires_grad_();
  const auto out = recurrence_static(gso, leaf, {weight}, steps, options).output;
  auto results = torch::autograd::grad({out.square().sum()}, {leaf, weight});
  results.push_back(out.detach());
  return results;
}

TEST(Recurrence, DoublingStaysFiniteWhereThePowersOfWOrALeaveTheirRange) {
  torch::manual_seed(13);
  const auto pattern = graph::make_gso(graph::make_random_connected(30, 60, 2));
  const auto scaled = [&](double factor) {
    std::vector<double> values(pattern.values<double>().begin(), pattern.values<double>().end());
    for (double& value : values) value *= factor;
    return pattern.with_values(values);
  };
  const auto u = torch::randn({30, 16});
  const auto initial = torch::randn({30, 16});
  const auto w = random_dense_w(16, torch::kFloat);
  // 20^40 is beyond a float and 20^20 beyond what its inverse may have for company.
  for (const double factor : {20.0, 1.0 / 20.0}) {
    for (const std::int64_t steps : {24, 41, 90}) {
      for (const bool starts : {false, true}) {
        SCOPED_TRACE(std::to_string(factor) + ", " + std::to_string(steps) + " steps" +
                     (starts ? ", from X(0)" : ""));
        const auto gso = scaled(1.0 / factor);
        RecurrenceOptions options{.plan = Plan::kReference,
                                  .initial = starts ? initial : torch::Tensor()};
        const auto expected = trained(gso, u, factor * w, steps, options);
        options.plan = Plan::kDoubling;
        const auto actual = trained(gso, u, factor * w, steps, options);
        for (std::size_t i = 0; i < expected.size(); ++i) {
          EXPECT_TRUE(close(actual[i], expected[i], 1e-4)) << "result " << i;
        }
        const torch::NoGradGuard no_grad;
        EXPECT_TRUE(close(recurrence_static(gso, u, {factor * w}, steps, options).output,
                          expected.back(), 1e-4));
      }
    }
  }
}

TEST(Recurrence, TheChosenPlanGivesTheReference) {
  const auto gso = graph::make_gso(graph::make_random_connected(40, 90, 3));
  torch::manual_seed(13);
  const auto u = torch::randn({40, 6}, torch::kDouble);
  for (const auto& w : {random_dense_w(6, torch::kDouble), random_sigma(3, torch::kDouble)}) {
    for (const std::int64_t steps : {1, 3, 20, 500}) {
      EXPECT_TRUE(close(recurrence_static(gso, u, {w}, steps).output,
                        reference_recurrence_static(gso, u, {w}, steps).output, 1e-9));
    }
  }
}

TEST(Recurrence, OtherDtypesGoToTheReference) {
  if (TORCH_VERSION_MAJOR < 2) GTEST_SKIP() << "this libtorch lacks operators for bfloat16";
  const auto gso = graph::make_gso(graph::make_ring(6));
  const auto u = torch::randn({6, 2}, torch::kBFloat16);
  const auto w = torch::eye(2, torch::kBFloat16);
  EXPECT_EQ(recurrence_static(gso, u, {w}, 3).output.scalar_type(), torch::kBFloat16);
}

TEST(Recurrence, TrainsOverThousandsOfHops) {
  const auto gso = graph::make_gso(graph::make_path(50));
  torch::manual_seed(14);
  const auto u = torch::randn({50, 4}, torch::kDouble);
  const auto sigma = torch::polar(torch::full({2}, 0.9999, torch::kDouble),
                                  torch::full({2}, 0.01, torch::kDouble));
  std::vector<torch::Tensor> gradients;
  for (const Plan plan : {Plan::kDiagonal, Plan::kSpectral, Plan::kStepwise}) {
    auto leaf = sigma.detach().clone().requires_grad_();
    recurrence_static(gso, u, {leaf}, 5001, {.plan = plan}).output.square().mean().backward();
    gradients.push_back(leaf.grad());
  }
  EXPECT_TRUE(close(gradients[0], gradients[2], 1e-9));
  EXPECT_TRUE(close(gradients[1], gradients[2], 1e-9));
}

TEST(Recurrence, SaysWhatIsWrongWithItsArguments) {
  const auto gso = graph::make_gso(graph::make_ring(5));
  const auto u = torch::randn({5, 4});
  const auto w = torch::eye(4);
  const auto sigma = random_sigma(2, torch::kFloat);
  const auto expect = [](const std::function<void()>& call, const std::string& message) {
    EXPECT_THAT(call, ThrowsMessage<c10::Error>(HasSubstr(message)));
  };
  expect(
      [&] {
        recurrence_static(gso, torch::randn({4, 4}), {w}, 2);
      },
      "recurrence_static: expected u of shape [..., N=5, C_in], got [4, 4]");
  expect([&] { recurrence_static(gso, {}, {w}, 2); }, "got an undefined tensor");
  expect([&] { recurrence_temporal(gso, u, {w}); },
         "recurrence_temporal: expected u of shape [..., T, N=5, C_in], got [5, 4]");
  expect([&] { recurrence_static(gso, u, {w}, 0); }, "expected at least one step, got 0");
  expect(
      [&] {
        recurrence_static(gso, torch::ones({5, 4}, torch::kLong), {w}, 2);
      },
      "expected u of a real floating type, got Long");
  expect([&] { recurrence_static(gso, u, {}, 2); }, "expected w_state, got an undefined tensor");
  expect(
      [&] {
        recurrence_static(gso, u, {torch::randn({4, 3})}, 2);
      },
      "expected a real w_state (dense) of shape [C, C], got [4, 3]");
  expect(
      [&] {
        recurrence_static(gso, u, {torch::randn({2, 2}, torch::kComplexFloat)}, 2);
      },
      "expected a complex w_state (diagonal) of shape [C/2], got [2, 2]");
  expect([&] { recurrence_static(gso, u, {w.to(torch::kDouble)}, 2); },
         "expected w_state of the precision of u (Float), got Double");
  expect(
      [&] {
        recurrence_static(gso, u, {w, torch::randn({3, 4})}, 2);
      },
      "expected w_in of shape [C_in=4, C=4], got [3, 4]");
  expect([&] { recurrence_static(gso, u, {torch::eye(6)}, 2); },
         "expected u with C=6 channels to match w_state (or give w_in), got 4");
  expect(
      [&] {
        recurrence_static(gso, u, {w}, 2, {.initial = torch::randn({5, 3})});
      },
      "expected initial of shape [5, 4], got [5, 3]");
  expect([&] { recurrence_static(gso, u, {w}, 2, {.gso_values = torch::randn({3})}); },
         "expected gso_values of shape [15], got [3]");
  expect([&] { recurrence_static(gso, u, {sigma}, 2, {.plan = Plan::kDoubling}); },
         "plan doubling cannot run this: W is diagonal");
  expect(
      [&] {
        recurrence_temporal(gso, u.expand({3, 5, 4}), {w}, {.plan = Plan::kDoubling});
      },
      "plan doubling cannot run this: the input is a sequence");
  expect(
      [&] {
        recurrence_static(gso, u, {w}, 2, {.plan = Plan::kDoubling, .outputs = Outputs::kAll});
      },
      "plan doubling cannot run this: all outputs are asked for");
  expect([&] { recurrence_static(gso, u, {w}, 2, {.plan = Plan::kDiagonal}); },
         "plan diagonal cannot run this: W is dense");
  const auto directed = awkward_operators()[5].gso;
  expect(
      [&] {
        recurrence_static(directed, torch::randn({6, 4}), {sigma}, 2, {.plan = Plan::kSpectral});
      },
      "plan spectral cannot run this: the operator is not symmetric");
  expect(
      [&] {
        auto leaf = u.clone().requires_grad_();
        auto out = recurrence_static(gso, leaf, {w}, 3, {.plan = Plan::kStepwise}).output;
        torch::autograd::grad({out.sum()}, {leaf}, {}, {}, /*create_graph=*/true);
      },
      "plan stepwise gives first derivatives only; use plan reference");
}

}  // namespace
}  // namespace mpssm::ops
