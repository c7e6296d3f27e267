// SPDX-License-Identifier: MIT
// Operators in bfloat16 against themselves in float32, values and gradients, and against the
// directional derivative of a loss in float32; the same bits for any number of threads.
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <torch/torch.h>

#include "mpssm/graph/generators.h"
#include "mpssm/ops/feed_forward.h"
#include "mpssm/ops/linear.h"
#include "mpssm/ops/recurrence.h"

#include "tests/support/threads.h"

namespace mpssm::ops {
namespace {

using engine::Precision;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using Tensors = std::vector<torch::Tensor>;
using Operator = std::function<torch::Tensor(const Tensors&, Precision)>;

/// An operator and its arguments.
struct Subject {
  std::string name;
  Operator run;
  Tensors arguments;
};

std::vector<Subject> subjects(std::int64_t rows) {
  const auto gso = graph::make_gso(graph::make_random_connected(rows, 3 * rows, 3));
  constexpr std::int64_t kColumns48 = 48;
  const auto x = torch::randn({rows, kColumns48});
  const auto w = torch::randn({kColumns48, kColumns48}) * 0.1;
  const auto scale = torch::rand({kColumns48}) + 0.5;
  const auto shift = torch::randn({kColumns48});
  const auto sigma =
      torch::polar(0.7 + 0.29 * torch::rand({kColumns48 / 2}), 3.0 * torch::rand({kColumns48 / 2}));
  const auto recurrence = [gso](Plan plan) -> Operator {
    return [gso, plan](const Tensors& a, Precision precision) {
      return recurrence_static(gso, a[0], {a[1]}, 9, {.plan = plan, .precision = precision}).output;
    };
  };
  return {
      {"linear",
       [](const Tensors& a, Precision precision) { return linear(a[0], a[1], a[2], precision); },
       {x, w, shift}},
      {"norm_linear",
       [](const Tensors& a, Precision precision) {
         return norm_linear(a[0], {a[1], a[2]}, a[3], precision);
       },
       {x, scale, shift, w}},
      {"feed_forward",
       [](const Tensors& a, Precision precision) {
         return feed_forward(a[0], {{a[1], a[2]}, a[3], a[4], a[5], a[6]},
                             {.residual = a[7], .precision = precision});
       },
       {x, scale, shift, w, shift * 0.1, w.t().contiguous(), shift * 0.2, x * 0.5}},
      {"stepwise", recurrence(Plan::kStepwise), {x, w}},
      {"doubling", recurrence(Plan::kDoubling), {x, w}},
      {"diagonal", recurrence(Plan::kDiagonal), {x, sigma}},
  };
}

/// The output and the gradients of all arguments.
Tensors results_of(const Subject& subject, Precision precision, const torch::Tensor& weight) {
  Tensors leaves;
  for (const auto& argument : subject.arguments) {
    leaves.push_back(argument.detach().clone().requires_grad_());
  }
  const auto y = subject.run(leaves, precision);
  Tensors results = torch::autograd::grad({y}, leaves, {weight});
  results.push_back(y.detach());
  return results;
}

double error_of(const torch::Tensor& expected, const torch::Tensor& got) {
  return ((got - expected).norm() / expected.norm()).item<double>();
}

// Nine steps round some dozen times, by up to 2^-8 and half of it on average, W at every step
// alike: 9 2^-9 is 1.8 %.
TEST(Bf16, GivesValuesAndGradientsOfFloat32WithinThreePercent) {
  torch::manual_seed(1);
  for (const Subject& subject : subjects(300)) {
    SCOPED_TRACE(subject.name);
    const auto weight = torch::randn({300, 48});
    const Tensors exact = results_of(subject, Precision::kFloat32, weight);
    const Tensors got = results_of(subject, Precision::kBf16, weight);
    for (std::size_t i = 0; i < exact.size(); ++i) {
      EXPECT_LT(error_of(exact[i], got[i]), 0.03) << i;
      EXPECT_EQ(got[i].scalar_type(), exact[i].scalar_type());
    }
    EXPECT_GT(error_of(exact.back(), got.back()), 1e-5) << "nothing was rounded";
  }
}

// Along its own direction: there the derivative is the sum of squares, and nothing cancels.
TEST(Bf16, HasTheDirectionalDerivativeOfTheLossInFloat32) {
  torch::manual_seed(2);
  for (const Subject& subject : subjects(300)) {
    SCOPED_TRACE(subject.name);
    const auto weight = torch::randn({300, 48});
    const Tensors gradients = results_of(subject, Precision::kBf16, weight);
    for (std::size_t i = 0; i < subject.arguments.size(); ++i) {
      const auto direction = gradients[i] / gradients[i].norm();
      const auto loss = [&](double step) {
        const torch::NoGradGuard no_grad;
        Tensors moved;
        for (const auto& argument : subject.arguments) {
          const bool complex = argument.is_complex();
          moved.push_back(argument.to(complex ? torch::kComplexDouble : torch::kDouble));
        }
        moved[i] = moved[i] + step * direction;
        const auto y = subject.run(moved, Precision::kFloat32);
        return (y * weight).sum().item<double>();
      };
      const double step = 1e-4 * (1.0 + subject.arguments[i].norm().item<double>());
      const double slope = (loss(step) - loss(-step)) / (2.0 * step);
      EXPECT_NEAR(gradients[i].norm().item<double>() / slope, 1.0, 0.03) << i;
    }
  }
}

TEST(Bf16, GivesTheSameBitsForAnyNumberOfThreads) {
  for (std::size_t i = 0; i < subjects(10).size(); ++i) {
    mpssm::testing::expect_same_bits([&] {
      const Subject subject = subjects(5007)[i];
      return results_of(subject, Precision::kBf16, torch::randn({5007, 48}));
    });
  }
}

TEST(Bf16, IsForFloat) {
  for (const Subject& subject : subjects(20)) {
    Tensors doubles;
    for (const auto& argument : subject.arguments) {
      doubles.push_back(
          argument.to(argument.is_complex() ? torch::kComplexDouble : torch::kDouble));
    }
    EXPECT_THAT([&] { subject.run(doubles, Precision::kBf16); },
                ThrowsMessage<c10::Error>(
                    HasSubstr("precision bf16 takes tensors of type Float, got Double")))
        << subject.name;
  }
  const auto gso = graph::make_gso(graph::make_ring(5));
  EXPECT_THAT(
      [&] {
        recurrence_static(gso, torch::ones({5, 2}), {torch::eye(2)}, 3,
                          {.plan = Plan::kReference, .precision = Precision::kBf16});
      },
      ThrowsMessage<c10::Error>(HasSubstr("plan reference computes in the type of its tensors")));
}

// What 8 bits of A^m and sigma^m cannot hold goes to plan stepwise, in float32.
TEST(Bf16, LeavesWhatItCannotHoldToStepwise) {
  const auto adjacency = graph::make_gso(graph::make_random_connected(40, 700, 1),
                                         {.kind = graph::GsoKind::kAdjacency});
  const auto u = torch::ones({40, 2});
  const auto sigma = torch::complex(torch::full({1}, 0.01), torch::zeros({1}));
  const auto y = [&](Plan plan, Precision precision) {
    return recurrence_static(adjacency, u, {sigma}, 33, {.plan = plan, .precision = precision})
        .output;
  };
  EXPECT_LT(error_of(y(Plan::kStepwise, Precision::kFloat32), y(Plan::kDiagonal, Precision::kBf16)),
            1e-5);
}

}  // namespace
}  // namespace mpssm::ops
