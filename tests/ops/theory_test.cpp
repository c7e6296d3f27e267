// SPDX-License-Identifier: MIT
// What follows from the recurrence being linear, and what the paper's text says of it.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <torch/torch.h>

#include "mpssm/graph/generators.h"
#include "mpssm/graph/spectrum.h"
#include "mpssm/ops/recurrence.h"

#include "tests/support/operators.h"
#include "tests/support/tensors.h"

namespace mpssm::ops {
namespace {

using mpssm::testing::awkward_operators;
using mpssm::testing::close;
using mpssm::testing::random_dense_w;
using mpssm::testing::random_sigma;
using mpssm::testing::relative_error;
using mpssm::testing::to_dense;

graph::Gso connected_operator() { return graph::make_gso(graph::make_random_connected(12, 25, 4)); }

// T1: an entry (j, b) of the state moved by 1 moves row i, s steps later, by (A^s)_ij (W^s)_b.
TEST(Theory, JacobianOfTheStateIsThePowerOfTheOperatorTimesThePowerOfW) {
  torch::manual_seed(1);
  for (const auto& gso : {connected_operator(), awkward_operators()[5].gso}) {
    const std::int64_t n = gso.num_nodes();
    const std::int64_t steps = 7;
    const auto w = random_dense_w(5, torch::kDouble);
    const auto u = torch::randn({steps, n, 5}, torch::kDouble);
    const auto state = torch::randn({n, 5}, torch::kDouble);
    const auto a_power = torch::matrix_power(to_dense(gso), steps);
    const auto w_power = torch::matrix_power(w, steps);
    const auto run = [&](const torch::Tensor& from) {
      return recurrence_temporal(gso, u, {w}, {.plan = Plan::kStepwise, .initial = from}).state;
    };
    const auto base = run(state);
    for (std::int64_t j = 0; j < n; j += 3) {
      for (std::int64_t b = 0; b < 5; b += 2) {
        auto moved = state.clone();
        moved[j][b] += 1.0;
        const auto expected = a_power.select(1, j).unsqueeze(1) * w_power[b].unsqueeze(0);
        EXPECT_LE((run(moved) - base - expected).abs().max().item<double>(), 1e-12);
      }
    }
  }
}

graph::Operators changing_operators(std::int64_t steps, std::int64_t copies) {
  std::vector<graph::Operators> operators;
  for (const std::uint64_t seed : {4, 5, 6}) {
    operators.push_back(graph::make_gso(graph::make_random_connected(12, 20, seed),
                                        {.kind = graph::GsoKind::kRandomWalk}));
  }
  std::vector<std::int32_t> index;
  for (std::int64_t i = 0; i < steps * copies; ++i) {
    index.push_back(static_cast<std::int32_t>(i * i % 7 % 3));
  }
  return graph::Operators::sequence(operators, index, steps);
}

// The same on a sequence of graphs: (A(s) ... A(1))_ij takes the place of the power.
TEST(Theory, JacobianOnASequenceOfGraphsIsTheProductOfItsOperators) {
  torch::manual_seed(1);
  constexpr std::int64_t kGraphs = 6;
  const graph::Operators gso = changing_operators(kGraphs, 1);
  torch::Tensor product = torch::eye(12, torch::kDouble);
  for (std::int64_t t = 0; t < kGraphs; ++t) product = to_dense(gso.at(0, t)).matmul(product);
  const auto u = torch::randn({kGraphs, 12, 4}, torch::kDouble);
  const auto sigma = random_sigma(2, torch::kDouble);
  const auto w = random_dense_w(4, torch::kDouble);
  for (const auto& [plan, weight] : {std::pair(Plan::kStepwise, w),
                                     {Plan::kStepwise, sigma},
                                     {Plan::kDiagonal, sigma},
                                     {Plan::kReference, sigma}}) {
    const auto run = [&, how = plan, by = weight](const torch::Tensor& from) {
      return recurrence_temporal(gso, u, {by}, {.plan = how, .initial = from}).state;
    };
    const auto zero = torch::zeros({12, 4}, torch::kDouble);
    const auto base = run(zero);
    // W^s of a state that has channel 0 of node j alone.
    const auto w_power = weight.is_complex()
                             ? torch::view_as_real(weight.pow(kGraphs))[0]
                             : torch::matrix_power(weight, kGraphs)[0].slice(0, 0, 2);
    for (std::int64_t j = 0; j < 12; j += 5) {
      auto moved = zero.clone();
      moved[j][0] = 1.0;
      const auto expected = product.select(1, j).unsqueeze(1) * w_power.unsqueeze(0);
      EXPECT_TRUE(close((run(moved) - base).slice(1, 0, 2), expected, 1e-12));
    }
  }
}

TEST(Theory, ASequenceOfGraphsInPiecesIsTheWhole) {
  torch::manual_seed(2);
  const graph::Operators gso = changing_operators(9, 2);
  const auto u = torch::randn({2, 9, 12, 4}, torch::kDouble);
  const auto sigma = random_sigma(2, torch::kDouble);
  const auto w = random_dense_w(4, torch::kDouble);
  for (const auto& [plan, weight] : {std::pair(Plan::kStepwise, w), {Plan::kDiagonal, sigma}}) {
    const auto whole =
        recurrence_temporal(gso, u, {weight}, {.plan = plan, .outputs = Outputs::kAll});
    RecurrenceResult piece;
    for (const auto& [begin, end] : {std::pair(0, 2), {2, 3}, {3, 9}}) {
      piece = recurrence_temporal(gso.steps(begin, end), u.slice(1, begin, end), {weight},
                                  {.plan = plan, .outputs = Outputs::kAll, .initial = piece.state});
      EXPECT_TRUE(piece.output.equal(whole.output.slice(1, begin, end)));
    }
  }
}

TEST(Theory, ASequenceOfGraphsThatDoesNotFitIsRefused) {
  const graph::Operators gso = changing_operators(4, 2);
  const auto u = torch::randn({2, 4, 12, 4});
  const auto w = torch::eye(4);
  const auto expect = [](const auto& call, const char* what) {
    try {
      call();
      ADD_FAILURE() << "expected: " << what;
    } catch (const std::exception& error) {
      EXPECT_NE(std::string(error.what()).find(what), std::string::npos) << error.what();
    }
  };
  expect([&] { recurrence_temporal(gso, u.slice(1, 0, 3), {w}); },
         "expected operators of 3 steps of 2 copies, got 4 of 2");
  expect(
      [&] {
        recurrence_temporal(gso, u.repeat({2, 1, 1, 1}), {w});
      },
      "expected operators of 4 steps of 4 copies, got 4 of 2");
  expect([&] { recurrence_static(gso, u[0][0], {w}, 4); }, "got a sequence");
  expect([&] { recurrence_temporal(gso, u, {w}, {.gso_values = torch::ones({5})}); },
         "no gso_values for a sequence");
  expect(
      [&] {
        recurrence_temporal(gso, u, {random_sigma(2, torch::kFloat)}, {.plan = Plan::kSpectral});
      },
      "A changes from step to step");
}

// T1b: the same by automatic differentiation, in float.
TEST(Theory, VectorJacobianProductOfEveryPlanIsTheClosedForm) {
  torch::manual_seed(2);
  const auto gso = connected_operator();
  const std::int64_t steps = 7;
  const auto a_power = torch::matrix_power(to_dense(gso), steps).to(torch::kFloat);
  const auto u = torch::zeros({12, 6});
  for (const Plan plan : {Plan::kStepwise, Plan::kDoubling, Plan::kDiagonal, Plan::kSpectral}) {
    const bool diagonal = plan == Plan::kDiagonal || plan == Plan::kSpectral;
    const auto w = diagonal ? random_sigma(3, torch::kFloat) : random_dense_w(6, torch::kFloat);
    auto state = torch::randn({12, 6}).requires_grad_();
    const auto out = recurrence_static(gso, u, {w}, steps, {.plan = plan, .initial = state}).output;
    const auto v = torch::randn({12, 6});
    const auto actual = torch::autograd::grad({out}, {state}, {v})[0];
    const auto moved = torch::matmul(a_power.t(), v);
    const auto expected = diagonal
                              ? torch::view_as_real(torch::view_as_complex(moved.view({12, 3, 2})) *
                                                    w.pow(steps).conj())
                                    .reshape({12, 6})
                              : torch::matmul(moved, torch::matrix_power(w, steps).t());
    EXPECT_TRUE(close(actual, expected, 1e-4)) << to_string(plan);
  }
}

// T11: the unfolded sum.
TEST(Theory, StateIsTheSumOverHopsOfPowersTimesInputs) {
  torch::manual_seed(3);
  const auto gso = connected_operator();
  const auto a = to_dense(gso);
  const auto w = random_dense_w(4, torch::kDouble);
  const auto b = torch::randn({3, 4}, torch::kDouble);
  const std::int64_t steps = 9;
  const auto u = torch::randn({steps, 12, 3}, torch::kDouble);
  auto expected = torch::zeros({12, 4}, torch::kDouble);
  for (std::int64_t i = 0; i < steps; ++i) {
    expected += torch::matrix_power(a, i)
                    .matmul(u[steps - 1 - i])
                    .matmul(b)
                    .matmul(torch::matrix_power(w, i));
  }
  EXPECT_LE(relative_error(recurrence_temporal(gso, u, {w, b}).state, expected), 1e-12);
}

/// The paper's Algorithm 1, word for word: flip, scale by powers, cumulative sum. In mode
/// coordinates; v: complex [T, N, C].
torch::Tensor literal_algorithm_1(const torch::Tensor& v, const torch::Tensor& lambda,
                                  const torch::Tensor& sigma) {
  const auto powers = torch::arange(v.size(0), torch::kDouble);
  const auto lambda_powers = lambda.unsqueeze(-1).pow(powers).t().unsqueeze(-1);
  const auto sigma_powers = sigma.unsqueeze(-1).pow(powers).t().unsqueeze(1);
  return (lambda_powers * v.flip({0}) * sigma_powers).cumsum(0);
}

// T8: for a sequence the literal algorithm is right at the last step and at no other; for constant
// input it is right everywhere. Our spectral plan is right at every step of both.
TEST(Theory, LiteralAlgorithm1FailsAtIntermediateTemporalStepsAndOursDoesNot) {
  torch::manual_seed(4);
  const auto gso = connected_operator();
  const auto& basis = graph::eigen_basis(gso);
  const auto p = torch::zeros({12, 12}, torch::kDouble);
  const auto view = basis.view<double>();
  for (std::int64_t i = 0; i < 12; ++i) {
    for (std::int64_t e = view.row_ptr[i]; e < view.row_ptr[i + 1]; ++e) {
      p[i][view.col[e]] = view.value[e];
    }
  }
  const std::vector<double> eigenvalues(basis.eigenvalues.begin(), basis.eigenvalues.end());
  const auto lambda = torch::tensor(eigenvalues, torch::kDouble).to(torch::kComplexDouble);
  const auto sigma = random_sigma(4, torch::kDouble);
  const std::int64_t steps = 10;
  const auto sequence = torch::randn({steps, 12, 8}, torch::kDouble);
  const auto constant = sequence.slice(0, 0, 1).expand({steps, 12, 8});
  for (const bool is_constant : {true, false}) {
    const auto& u = is_constant ? constant : sequence;
    const auto loop =
        recurrence_temporal(gso, u, {sigma}, {.plan = Plan::kStepwise, .outputs = Outputs::kAll})
            .output;
    const auto ours =
        recurrence_temporal(gso, u, {sigma}, {.plan = Plan::kSpectral, .outputs = Outputs::kAll})
            .output;
    EXPECT_LE(relative_error(ours, loop), 1e-10);

    const auto modes =
        torch::view_as_complex(torch::matmul(p.t(), u).reshape({steps, 12, 4, 2}).contiguous());
    const auto z = literal_algorithm_1(modes, lambda, sigma);
    const auto literal = torch::matmul(p, torch::view_as_real(z).reshape({steps, 12, 8}));
    EXPECT_LE(relative_error(literal[steps - 1], loop[steps - 1]), 1e-10);
    for (std::int64_t t = 0; t + 1 < steps; ++t) {
      const double error = relative_error(literal[t], loop[t]);
      if (is_constant) {
        EXPECT_LE(error, 1e-10) << "step " << t;
      } else {
        EXPECT_GE(error, 1e-2) << "step " << t;
      }
    }
  }
}

// A = I: an ordinary state-space model with many inputs and outputs, at every node by itself.
TEST(Theory, IdentityOperatorGivesAnOrdinaryStateSpaceModel) {
  torch::manual_seed(5);
  const auto gso = graph::make_gso(graph::make_ring(6), {.kind = graph::GsoKind::kIdentity});
  const auto w = random_dense_w(5, torch::kDouble);
  const auto b = torch::randn({2, 5}, torch::kDouble);
  const auto u = torch::randn({20, 6, 2}, torch::kDouble);
  const auto out = recurrence_temporal(gso, u, {w, b}, {.outputs = Outputs::kAll}).output;
  for (std::int64_t node = 0; node < 6; ++node) {
    auto x = torch::zeros({5}, torch::kDouble);
    for (std::int64_t t = 0; t < 20; ++t) {
      x = torch::matmul(x, w) + torch::matmul(u[t][node], b);
      EXPECT_LE(relative_error(out[t][node], x), 1e-12);
    }
  }
}

TEST(Theory, RecurrenceIsLinearInItsInput) {
  torch::manual_seed(6);
  const auto gso = connected_operator();
  const auto u = torch::randn({12, 6}, torch::kDouble);
  const auto v = torch::randn({12, 6}, torch::kDouble);
  for (const auto& w : {random_dense_w(6, torch::kDouble), random_sigma(3, torch::kDouble)}) {
    const auto run = [&](const torch::Tensor& x) {
      return recurrence_static(gso, x, {w}, 9).output;
    };
    EXPECT_LE(relative_error(run(2 * u - 3 * v), 2 * run(u) - 3 * run(v)), 1e-12);
  }
}

TEST(Theory, RecurrenceIsEquivariantToNodePermutation) {
  torch::manual_seed(7);
  const auto order = torch::randperm(12);
  graph::EdgeList edges{.num_nodes = 12};
  graph::EdgeList renamed{.num_nodes = 12};
  const auto graph = graph::make_random_connected(12, 25, 4);
  for (std::int64_t i = 0; i < 12; ++i) {
    for (std::int64_t e = graph.row_ptr()[i]; e < graph.row_ptr()[i + 1]; ++e) {
      edges.src.push_back(graph.col()[e]);
      edges.dst.push_back(i);
      renamed.src.push_back(order[graph.col()[e]].item<std::int64_t>());
      renamed.dst.push_back(order[i].item<std::int64_t>());
    }
  }
  const auto gso = graph::make_gso(graph::Graph::from_edges(edges));
  const auto gso_renamed = graph::make_gso(graph::Graph::from_edges(renamed));
  const auto u = torch::randn({12, 6}, torch::kDouble);
  const auto u_renamed = torch::empty_like(u).index_copy(0, order, u);
  for (const auto& w : {random_dense_w(6, torch::kDouble), random_sigma(3, torch::kDouble)}) {
    EXPECT_LE(relative_error(recurrence_static(gso_renamed, u_renamed, {w}, 9).output,
                             torch::empty_like(u).index_copy(
                                 0, order, recurrence_static(gso, u, {w}, 9).output)),
              1e-12);
  }
}

}  // namespace
}  // namespace mpssm::ops
