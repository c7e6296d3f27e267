// SPDX-License-Identifier: MIT
#include "mpssm/ops/spmm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <torch/torch.h>

#include "mpssm/graph/generators.h"
#include "mpssm/ops/reference.h"

#include "tests/support/gradcheck.h"
#include "tests/support/operators.h"
#include "tests/support/tensors.h"

namespace mpssm::ops {
namespace {

using mpssm::testing::awkward_operators;
using mpssm::testing::close;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(Spmm, EqualsTheMatrixProduct) {
  torch::manual_seed(1);
  for (const auto& [name, gso] : awkward_operators()) {
    const auto a = mpssm::testing::to_dense(gso);
    for (const std::int64_t width : {1, 3, 7, 8, 9, 15, 16, 17, 31, 33, 64, 130}) {
      SCOPED_TRACE(name + ", width " + std::to_string(width));
      const auto x = torch::randn({2, gso.num_nodes(), width}, torch::kDouble);
      EXPECT_TRUE(close(spmm(gso, x), torch::matmul(a, x), 1e-13));
      EXPECT_TRUE(close(spmm_transposed(gso, x), torch::matmul(a.t(), x), 1e-13));
      EXPECT_TRUE(close(reference_spmm(gso, x), torch::matmul(a, x), 1e-13));
    }
  }
}

TEST(Spmm, HasTheTransposeAsItsAdjoint) {
  torch::manual_seed(2);
  for (const auto& [name, gso] : awkward_operators()) {
    const auto x = torch::randn({gso.num_nodes(), 5}, torch::kDouble);
    const auto y = torch::randn({gso.num_nodes(), 5}, torch::kDouble);
    EXPECT_NEAR((spmm(gso, x) * y).sum().item<double>(),
                (x * spmm_transposed(gso, y)).sum().item<double>(), 1e-12)
        << name;
  }
}

TEST(Spmm, GradientIsTheNumericOne) {
  const auto gso = awkward_operators()[5].gso;
  mpssm::testing::expect_gradients(
      [&](const std::vector<torch::Tensor>& x) { return spmm(gso, x[0]); },
      {torch::randn({2, gso.num_nodes(), 3}, torch::kDouble)});
}

TEST(Spmm, CanBeDifferentiatedTwice) {
  const auto gso = awkward_operators()[5].gso;
  auto x = torch::randn({gso.num_nodes(), 2}, torch::kDouble).requires_grad_();
  const auto y = spmm(gso, x);
  const auto first = torch::autograd::grad({y.pow(3).sum()}, {x}, {}, {}, true)[0];
  const auto second = torch::autograd::grad({first.sum()}, {x})[0];
  const auto a = mpssm::testing::to_dense(gso);
  const auto expected =
      torch::matmul(a.t(), 6 * torch::matmul(a, x) * torch::matmul(a, torch::ones_like(x)));
  EXPECT_TRUE(close(second, expected.detach(), 1e-12));
}

TEST(Spmm, TakesNonContiguousInput) {
  const auto gso = graph::make_gso(graph::make_ring(6));
  const auto x = torch::randn({4, 6}, torch::kDouble).t();
  EXPECT_TRUE(close(spmm(gso, x), spmm(gso, x.contiguous()), 0.0));
}

TEST(Spmm, SaysWhatIsWrongWithItsArgument) {
  const auto gso = graph::make_gso(graph::make_ring(6));
  EXPECT_THAT(
      [&] {
        spmm(gso, torch::randn({5, 2}));
      },
      ThrowsMessage<c10::Error>(HasSubstr("spmm: expected x of shape [..., N=6, C], got [5, 2]")));
  EXPECT_THAT([&] { spmm(gso, {}); }, ThrowsMessage<c10::Error>(HasSubstr("an undefined tensor")));
}

}  // namespace
}  // namespace mpssm::ops
