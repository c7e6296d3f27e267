// SPDX-License-Identifier: MIT
#include "mpssm/ops/gelu.h"

#include <gtest/gtest.h>

#include <torch/torch.h>

#include "mpssm/kernels/simd.h"

#include "tests/support/gradcheck.h"

namespace mpssm::ops {
namespace {

// Against torch in double, over the whole range where the function is neither 0 nor x.
TEST(Gelu, AgreesWithTorchToThePrecisionOfAFloat) {
  for (const std::string& target : kernels::simd_targets()) {
    SCOPED_TRACE(target);
    kernels::set_simd_target(target);
    auto x = torch::linspace(-12, 12, 40003).requires_grad_();
    auto wide = x.detach().to(torch::kDouble).requires_grad_();
    const auto y = ops::gelu(x);
    const auto expected = torch::gelu(wide);
    EXPECT_LE(((y - expected).abs() / (1 + wide.abs())).max().item<double>(), 3e-7);
    y.sum().backward();
    expected.sum().backward();
    EXPECT_LE((x.grad() - wide.grad()).abs().max().item<double>(), 1e-6);
  }
  kernels::set_simd_target("");
}

TEST(Gelu, IsZeroAtZeroAndKeepsInfinitiesAndNans) {
  const float infinity = std::numeric_limits<float>::infinity();
  const auto y = ops::gelu(torch::tensor({0.0f, infinity, std::nanf("")}));
  EXPECT_EQ(y[0].item<float>(), 0.0f);
  EXPECT_EQ(y[1].item<float>(), infinity);
  EXPECT_TRUE(std::isnan(y[2].item<float>()));
}

TEST(Gelu, TakesDoubleAndNonContiguousInput) {
  const auto x = torch::randn({4, 6}, torch::kDouble).t();
  EXPECT_TRUE(torch::allclose(ops::gelu(x), torch::gelu(x)));
  const auto y = x.to(torch::kFloat).t();
  EXPECT_TRUE(torch::allclose(ops::gelu(y.t()), torch::gelu(y.t()), 1e-5, 1e-6));
}

}  // namespace
}  // namespace mpssm::ops
