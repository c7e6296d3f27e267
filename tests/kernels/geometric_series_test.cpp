// SPDX-License-Identifier: MIT
#include "mpssm/kernels/geometric_series.h"

#include <cmath>
#include <complex>
#include <vector>

#include <gtest/gtest.h>

#include "tests/kernels/every_target.h"

namespace mpssm::kernels {
namespace {

using Complex = std::complex<long double>;

/// The definition, in higher precision: 1 + z + ... + z^(K-1), z^K and their derivatives.
struct Sums {
  Complex g = 0, p = 1, dg = 0, dp = 0;
  Sums(std::int64_t num_steps, Complex z) {
    for (std::int64_t i = 0; i < num_steps; ++i) {
      dg += dp;
      g += p;
      dp = p + z * dp;
      p *= z;
    }
  }
};

double relative(double re, double im, Complex expected) {
  const Complex difference = Complex(re, im) - expected;
  return static_cast<double>(std::abs(difference) / std::max(std::abs(expected), 1e-12L));
}

// z at, near and far from 0, 1 and -1, inside and outside the circle, real and not.
std::vector<std::complex<double>> awkward_points() {
  std::vector<std::complex<double>> points = {0.0, 1.0, -1.0, {0.0, 1.0}, 0.5, -0.5, 1.001, -1.001};
  for (const double distance : {1e-16, 1e-12, 1e-8, 1e-4, 1e-2, 0.3}) {
    points.emplace_back(1.0 - distance, 0.0);
    points.emplace_back(1.0, distance);
    points.emplace_back(distance, -distance);
    points.emplace_back(-1.0 + distance, distance);
  }
  return points;
}

// Rounding z alone already moves z^K by K eps: the bound allows a few times that.
TEST(GeometricSeries, EqualsTheSumAtAwkwardPointsForEveryNumberOfSteps) {
  for_every_target([&] {
    const auto points = awkward_points();
    const auto count = static_cast<std::int64_t>(points.size());
    std::vector<double> re, im;
    for (const auto& point : points) {
      re.push_back(point.real() / 0.5);
      im.push_back(point.imag() / 0.5);
    }
    for (const std::int64_t steps : {0, 1, 2, 3, 7, 8, 17, 100, 1000, 5001}) {
      for (const std::int64_t channels : {count, count - 1, std::int64_t{1}, std::int64_t{5}}) {
        std::vector<double> v[8];
        for (auto& each : v) each.assign(points.size(), -7.0);
        const SeriesValues all{v[0].data(), v[1].data(), v[2].data(), v[3].data(),
                               v[4].data(), v[5].data(), v[6].data(), v[7].data()};
        geometric_series(steps, 0.5, re.data(), im.data(), channels, all);
        const double tolerance = 1e-15 * static_cast<double>(8 + 4 * steps);
        for (std::int64_t c = 0; c < channels; ++c) {
          const Sums sums(steps, Complex(0.5 * re[c], 0.5 * im[c]));
          SCOPED_TRACE("z = " + std::to_string(points[c].real()) + " + " +
                       std::to_string(points[c].imag()) + " i, K = " + std::to_string(steps));
          // g and g' may cancel to nearly nothing (z near -1): compare with the size of their
          // terms.
          const long double scale = std::abs(points[c]) > 1.0 ? std::abs(sums.p) : 1.0L;
          const auto error = [&](int i, Complex expected, long double least) {
            const Complex difference = Complex(v[2 * i][c], v[2 * i + 1][c]) - expected;
            return static_cast<double>(std::abs(difference) / std::max(std::abs(expected), least));
          };
          EXPECT_LE(error(0, sums.g, scale), tolerance);
          EXPECT_LE(relative(v[2][c], v[3][c], sums.p), tolerance);
          EXPECT_LE(error(2, sums.dg, scale * static_cast<long double>(steps + 1)), tolerance);
          EXPECT_LE(error(3, sums.dp, scale), tolerance);
        }
        for (std::size_t c = channels; c < points.size(); ++c) ASSERT_EQ(v[0][c], -7.0);

        std::vector<double> g_only[4];
        for (auto& each : g_only) each.assign(points.size(), 0.0);
        geometric_series(steps, 0.5, re.data(), im.data(), channels,
                         {g_only[0].data(), g_only[1].data(), g_only[2].data(), g_only[3].data()});
        for (std::int64_t c = 0; c < channels; ++c) {
          EXPECT_EQ(g_only[0][c], v[0][c]);
          EXPECT_EQ(g_only[3][c], v[3][c]);
        }
      }
    }
  });
}

}  // namespace
}  // namespace mpssm::kernels
