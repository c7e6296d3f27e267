// SPDX-License-Identifier: MIT
// Values and gradients have the same bits for any number of threads, in sizes that keep seven busy.
#include <vector>

#include <gtest/gtest.h>

#include <torch/torch.h>

#include "mpssm/graph/generators.h"
#include "mpssm/ops/dropout.h"
#include "mpssm/ops/edge_softmax.h"
#include "mpssm/ops/gelu.h"
#include "mpssm/ops/layer_norm.h"
#include "mpssm/ops/linear.h"
#include "mpssm/ops/pool.h"
#include "mpssm/ops/recurrence.h"
#include "mpssm/ops/spmm.h"

#include "tests/support/tensors.h"
#include "tests/support/threads.h"

namespace mpssm::ops {
namespace {

using mpssm::testing::expect_same_bits;
using Tensors = std::vector<torch::Tensor>;

/// The output and the gradients of all arguments, for a random gradient of the output.
template <typename F>
Tensors with_gradients(const F& f, Tensors arguments) {
  for (auto& argument : arguments) argument.requires_grad_();
  const torch::Tensor out = f(arguments);
  Tensors results = torch::autograd::grad({out}, arguments, {torch::randn_like(out)});
  results.push_back(out.detach());
  return results;
}

// 14,007 rows are 14 parts of a sum and one row more than whole tasks; 24 and 64 channels are where
// the BLAS was seen to differ.
constexpr std::int64_t kRows = 14007;

TEST(SameBits, Linear) {
  for (const std::int64_t channels : {24, 64, 100}) {
    expect_same_bits([&] {
      return with_gradients(
          [](const Tensors& x) { return ops::linear(x[0], x[1], x[2]); },
          {torch::randn({kRows, channels}), torch::randn({40, channels}), torch::randn({40})});
    });
    expect_same_bits([&] {
      return with_gradients([](const Tensors& x) { return ops::matmul(x[0], x[1]); },
                            {torch::randn({kRows, channels}, torch::kDouble),
                             torch::randn({channels, 40}, torch::kDouble)});
    });
  }
}

TEST(SameBits, LayerNorm) {
  expect_same_bits([] {
    return with_gradients([](const Tensors& x) { return ops::layer_norm(x[0], x[1], x[2]); },
                          {torch::randn({kRows, 33}), torch::randn({33}), torch::randn({33})});
  });
}

TEST(SameBits, GeluDropoutAndSparseProduct) {
  const auto gso = graph::make_gso(graph::make_random_connected(kRows, 2 * kRows, 1));
  expect_same_bits([&] {
    return with_gradients(
        [&](const Tensors& x) { return spmm(gso, ops::dropout(ops::gelu(x[0]), 0.3)); },
        {torch::randn({kRows, 20})});
  });
}

TEST(SameBits, Pool) {
  std::vector<graph::Graph> graphs;
  for (std::int64_t n = 1; n < 200; ++n) graphs.push_back(graph::make_ring(n + 2));
  const auto gso = graph::make_gso(graph::make_batch(graphs));
  expect_same_bits([&] {
    return with_gradients([&](const Tensors& x) { return pool(gso, x[0], Pooling::kSumMaxMean); },
                          {torch::randn({gso.num_nodes(), 20})});
  });
}

struct Planned {
  Plan plan;
  bool diagonal;
  bool temporal;
  Outputs outputs;
};

TEST(SameBits, EveryPlanOfTheRecurrence) {
  std::vector<Planned> cases = {{Plan::kDoubling, false, false, Outputs::kLast}};
  for (const bool temporal : {false, true}) {
    for (const Outputs outputs : {Outputs::kLast, Outputs::kAll}) {
      cases.push_back({Plan::kStepwise, false, temporal, outputs});
      cases.push_back({Plan::kStepwise, true, temporal, outputs});
      cases.push_back({Plan::kDiagonal, true, temporal, outputs});
      cases.push_back({Plan::kSpectral, true, temporal, outputs});
    }
  }
  const auto large = graph::make_gso(graph::make_random_connected(3001, 6000, 1));
  const auto small = graph::make_gso(graph::make_random_connected(150, 500, 1));
  for (const Planned& c : cases) {
    for (const std::int64_t channels : {24, 64}) {
      SCOPED_TRACE(std::string(to_string(c.plan)) + (c.diagonal ? " diagonal" : " dense") +
                   (c.temporal ? " temporal" : " static") +
                   (c.outputs == Outputs::kAll ? " all" : " last") + ", " +
                   std::to_string(channels) + " channels");
      const graph::Gso& gso = c.plan == Plan::kSpectral ? small : large;
      const std::int64_t n = gso.num_nodes();
      expect_same_bits([&] {
        const auto u = c.temporal ? torch::randn({2, 6, n, 10}) : torch::randn({2, n, 10});
        // Orthogonal would come from LAPACK; any W that keeps powers in range will do.
        const auto w = c.diagonal ? mpssm::testing::random_sigma(channels / 2, torch::kFloat)
                                  : torch::randn({channels, channels}) / std::sqrt(3.0 * channels);
        return with_gradients(
            [&](const Tensors& x) {
              const RecurrenceOptions options{
                  .plan = c.plan, .outputs = c.outputs, .initial = x[3]};
              return c.temporal ? recurrence_temporal(gso, x[0], {x[1], x[2]}, options).output
                                : recurrence_static(gso, x[0], {x[1], x[2]}, 6, options).output;
            },
            {u, w, torch::randn({10, channels}), torch::randn({2, n, channels})});
      });
    }
  }
}

TEST(SameBits, RecurrenceWithGivenEntries) {
  const auto gso = graph::make_gso(graph::make_random_connected(3001, 6000, 1));
  expect_same_bits([&] {
    return with_gradients(
        [&](const Tensors& x) {
          return recurrence_static(gso, x[0], {x[1]}, 4, {.gso_values = x[2]}).output;
        },
        {torch::randn({3001, 24}), torch::randn({24, 24}) / 8, torch::rand({gso.num_nonzeros()})});
  });
  expect_same_bits([&] {
    return with_gradients(
        [&](const Tensors& x) {
          return recurrence_static(gso, x[0], {x[1]}, 14, {.gso_values = x[2]}).output;
        },
        {torch::randn({3001, 48}), mpssm::testing::random_sigma(24, torch::kFloat),
         torch::rand({gso.num_nonzeros()}) / 4});
  });
}

TEST(SameBits, EdgeSoftmax) {
  const auto gso = graph::make_gso(graph::make_random_connected(3001, 12000, 1));
  expect_same_bits([&] {
    return with_gradients([&](const Tensors& x) { return edge_softmax(gso, x[0], x[1]); },
                          {torch::randn({3001}), torch::randn({3001})});
  });
}

}  // namespace
}  // namespace mpssm::ops
