// SPDX-License-Identifier: MIT
#include "mpssm/kernels/layer_norm.h"

#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "mpssm/base/random.h"

#include "tests/kernels/every_target.h"

namespace mpssm::kernels {
namespace {

constexpr std::int64_t kRows = 5;
constexpr double kEpsilon = 1e-5;

/// Arguments of one width, and what plain loops in double make of them.
template <typename T>
struct Case {
  explicit Case(std::int64_t channels) : width(channels) {
    base::Random random(static_cast<std::uint64_t>(channels));
    const auto draw = [&](std::int64_t count) {
      std::vector<T> numbers(static_cast<std::size_t>(count));
      for (T& number : numbers) number = static_cast<T>(4.0 * random.unit() - 1.0);
      return numbers;
    };
    x = draw(kRows * width);
    grad = draw(kRows * width);
    scale = draw(width);
    shift = draw(width);
    mean.resize(kRows);
    inverse.resize(kRows);
  }
  LayerNormArgs<T> args() {
    return {.width = width,
            .epsilon = kEpsilon,
            .x = x.data(),
            .scale = scale.data(),
            .mean = mean.data(),
            .inverse = inverse.data()};
  }
  double tolerance() const {
    return 100.0 * static_cast<double>(width) * std::numeric_limits<T>::epsilon();
  }

  std::int64_t width;
  std::vector<T> x, grad, scale, shift, mean, inverse;
};

struct Moments {
  double mean = 0.0;
  double inverse = 0.0;
};

template <typename T>
Moments moments(const Case<T>& c, std::int64_t row) {
  Moments found;
  for (std::int64_t j = 0; j < c.width; ++j) found.mean += c.x[row * c.width + j];
  found.mean /= static_cast<double>(c.width);
  double variance = 0.0;
  for (std::int64_t j = 0; j < c.width; ++j) {
    variance += std::pow(c.x[row * c.width + j] - found.mean, 2);
  }
  found.inverse = 1.0 / std::sqrt(variance / static_cast<double>(c.width) + kEpsilon);
  return found;
}

template <typename T>
class LayerNormKernel : public ::testing::Test {};
using Reals = ::testing::Types<float, double>;
TYPED_TEST_SUITE(LayerNormKernel, Reals);

// Below, at and beyond every vector width, with rests.
constexpr std::int64_t kWidths[] = {1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 33, 64, 100};

TYPED_TEST(LayerNormKernel, IsThatOfPlainLoops) {
  for_every_target([] {
    for (const std::int64_t width : kWidths) {
      Case<TypeParam> c(width);
      std::vector<TypeParam> y(c.x.size(), TypeParam{9});
      layer_norm(c.args(), c.shift.data(), y.data(), 1, kRows);
      for (std::int64_t row = 0; row < kRows; ++row) {
        const Moments m = moments(c, row);
        if (row > 0) {
          EXPECT_NEAR(c.mean[row], m.mean, c.tolerance());
          EXPECT_NEAR(c.inverse[row] / m.inverse, 1.0, 100.0 * c.tolerance());
        }
        for (std::int64_t j = 0; j < width; ++j) {
          const double normal = (c.x[row * width + j] - m.mean) * m.inverse;
          const double expected = row == 0 ? 9.0 : normal * c.scale[j] + c.shift[j];
          EXPECT_NEAR(y[row * width + j], expected, 100.0 * c.tolerance()) << width << " " << j;
        }
      }
    }
  });
}

TYPED_TEST(LayerNormKernel, AdjointIsThatOfPlainLoops) {
  for_every_target([] {
    for (const std::int64_t width : kWidths) {
      Case<TypeParam> c(width);
      std::vector<TypeParam> y(c.x.size());
      layer_norm(c.args(), c.shift.data(), y.data(), 0, kRows);
      std::vector<TypeParam> grad_x(c.x.size());
      std::vector<TypeParam> grad_scale(width, TypeParam{1});  // the parts of rows are added
      std::vector<TypeParam> grad_shift(width, TypeParam{2});
      layer_norm_adjoint(c.args(), c.grad.data(), grad_x.data(), grad_scale.data(),
                         grad_shift.data(), 0, kRows);
      std::vector<double> scale(width, 1.0);
      std::vector<double> shift(width, 2.0);
      for (std::int64_t row = 0; row < kRows; ++row) {
        const Moments m = moments(c, row);
        const auto normal = [&](std::int64_t j) {
          return (c.x[row * width + j] - m.mean) * m.inverse;
        };
        const auto scaled = [&](std::int64_t j) {
          return static_cast<double>(c.grad[row * width + j]) * c.scale[j];
        };
        double sum = 0.0;
        double dot = 0.0;
        for (std::int64_t j = 0; j < width; ++j) {
          sum += scaled(j) / static_cast<double>(width);
          dot += scaled(j) * normal(j) / static_cast<double>(width);
          scale[j] += c.grad[row * width + j] * normal(j);
          shift[j] += c.grad[row * width + j];
        }
        for (std::int64_t j = 0; j < width; ++j) {
          const double expected = m.inverse * (scaled(j) - sum - normal(j) * dot);
          EXPECT_NEAR(grad_x[row * width + j], expected, 100.0 * c.tolerance() * m.inverse)
              << width << " " << j;
        }
      }
      for (std::int64_t j = 0; j < width; ++j) {
        EXPECT_NEAR(grad_scale[j], scale[j], 1000.0 * c.tolerance()) << width;
        EXPECT_NEAR(grad_shift[j], shift[j], 100.0 * c.tolerance()) << width;
      }
    }
  });
}

}  // namespace
}  // namespace mpssm::kernels
