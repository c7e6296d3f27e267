// SPDX-License-Identifier: MIT
#include "mpssm/kernels/gelu.h"

#include <cmath>
#include <numbers>
#include <vector>

#include <gtest/gtest.h>

#include "tests/kernels/every_target.h"

namespace mpssm::kernels {
namespace {

constexpr double kTolerance = 5e-7;  // 2e-7 of the approximation, rounding of floats near 10
constexpr float kUntouched = -77.0f;

double phi(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }
double density(double x) { return std::exp(-0.5 * x * x) / std::sqrt(2.0 * std::numbers::pi); }

/// From -10 to 10: both tails, the bend, zero.
std::vector<float> ramp(std::size_t count) {
  std::vector<float> x(count);
  for (std::size_t i = 0; i < count; ++i) {
    x[i] = static_cast<float>(20.0 * static_cast<double>(i) / static_cast<double>(count) - 10.0);
  }
  return x;
}

TEST(GeluKernel, IsXTimesPhi) {
  for_every_target([] {
    const std::vector<float> x = ramp(1003);
    std::vector<float> y(x.size());
    gelu(x.data(), y.data(), 0, std::ssize(x));
    for (std::size_t i = 0; i < x.size(); ++i) {
      EXPECT_NEAR(y[i], x[i] * phi(x[i]), kTolerance * (1.0 + std::abs(x[i]))) << x[i];
    }
  });
}

TEST(GeluKernel, AdjointIsTheDerivative) {
  for_every_target([] {
    const std::vector<float> x = ramp(1003);
    std::vector<float> grad_x(x.size());
    const std::vector<float> grad(x.size(), -2.0f);
    gelu_adjoint(x.data(), grad.data(), grad_x.data(), 0, std::ssize(x));
    for (std::size_t i = 0; i < x.size(); ++i) {
      EXPECT_NEAR(grad_x[i], -2.0 * (phi(x[i]) + x[i] * density(x[i])), 4.0 * kTolerance) << x[i];
    }
  });
}

TEST(GeluKernel, AnyRangeIsThePartOfTheWhole) {
  for_every_target([] {
    const std::vector<float> x = ramp(70);
    const std::vector<float> grad(x.size(), 0.5f);
    std::vector<float> whole(x.size());
    std::vector<float> whole_grad(x.size());
    gelu(x.data(), whole.data(), 0, std::ssize(x));
    gelu_adjoint(x.data(), grad.data(), whole_grad.data(), 0, std::ssize(x));
    for (const std::int64_t begin : {0, 1, 7, 16}) {
      for (std::int64_t end = begin; end <= begin + 40; ++end) {
        std::vector<float> y(x.size(), kUntouched);
        std::vector<float> grad_x(x.size(), kUntouched);
        gelu(x.data(), y.data(), begin, end);
        gelu_adjoint(x.data(), grad.data(), grad_x.data(), begin, end);
        std::vector<float> also_y(x.size(), kUntouched);
        std::vector<float> slope = x;  // in place
        gelu_and_slope(slope.data(), also_y.data(), slope.data(), begin, end);
        ASSERT_EQ(also_y, y) << begin << " " << end;
        for (std::int64_t i = 0; i < std::ssize(x); ++i) {
          const bool inside = i >= begin && i < end;
          ASSERT_EQ(y[i], inside ? whole[i] : kUntouched) << begin << " " << end << " " << i;
          ASSERT_EQ(slope[i], inside ? 2.0f * whole_grad[i] : x[i]) << begin << " " << end;
          ASSERT_EQ(grad_x[i], inside ? whole_grad[i] : kUntouched) << begin << " " << end;
        }
      }
    }
  });
}

TEST(GeluKernel, ExtremesAreZeroOrTheNumberItself) {
  for_every_target([] {
    const std::vector<float> x = {-1e30f, -100.0f, 0.0f, 100.0f, 1e30f};
    std::vector<float> y(x.size());
    gelu(x.data(), y.data(), 0, std::ssize(x));
    for (std::size_t i = 0; i < x.size(); ++i) EXPECT_EQ(y[i], std::max(x[i], 0.0f)) << x[i];
  });
}

}  // namespace
}  // namespace mpssm::kernels
