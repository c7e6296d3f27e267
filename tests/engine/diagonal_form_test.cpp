// SPDX-License-Identifier: MIT
#include "mpssm/engine/diagonal_form.h"

#include <cmath>
#include <complex>

#include <gtest/gtest.h>

#include "tests/engine/numbers.h"

namespace mpssm::engine {
namespace {

/// x [channels] times w.
Numbers times(const Numbers& x, const Numbers& w) {
  const std::size_t n = x.size();
  Numbers y(w.size() / n);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < y.size(); ++j) y[j] += x[i] * w[i * y.size() + j];
  }
  return y;
}

Numbers times_sigma(Numbers z, const DiagonalForm& form) {
  for (std::size_t j = 0; j < z.size(); j += 2) {
    const auto product = std::complex<double>(z[j], z[j + 1]) *
                         std::complex<double>(form.sigma[j], form.sigma[j + 1]);
    z[j] = product.real();
    z[j + 1] = product.imag();
  }
  return z;
}

TEST(DiagonalForm, MovesAStateAsWDoesAnyNumberOfTimes) {
  for (const std::int64_t channels : {1, 2, 3, 8, 33}) {
    Numbers w = random_numbers(channels * channels, 7);
    for (double& number : w) number *= 0.7 / std::sqrt(static_cast<double>(channels));
    const DiagonalForm form = diagonal_form(w.data(), channels);
    EXPECT_LE(form.num_pairs(), channels);
    EXPECT_GE(2 * form.num_pairs(), channels);
    EXPECT_GE(form.condition, 1.0 - 1e-12);
    Numbers x = random_numbers(channels, 8);
    Numbers z = times(x, form.enter);
    for (int t = 0; t < 5; ++t) {
      const Numbers back = times(z, form.leave);
      ASSERT_EQ(back.size(), x.size());
      for (std::size_t c = 0; c < x.size(); ++c) {
        EXPECT_NEAR(back[c], x[c], 1e-14 * form.condition) << channels << " channels, step " << t;
      }
      x = times(x, w);
      z = times_sigma(z, form);
    }
  }
}

TEST(DiagonalForm, KeepsOneOfEachConjugatePair) {
  const Numbers turn = {0.0, -0.5, 0.5, 0.0};
  const DiagonalForm form = diagonal_form(turn.data(), 2);
  ASSERT_EQ(form.num_pairs(), 1);
  EXPECT_NEAR(form.sigma[0], 0.0, 1e-15);
  EXPECT_NEAR(form.sigma[1], 0.5, 1e-15);
  EXPECT_NEAR(form.condition, 1.0, 1e-12);
}

TEST(DiagonalForm, SaysHowBadABasisIs) {
  const Numbers jordan = {1.0, 1.0, 0.0, 1.0};
  EXPECT_GT(diagonal_form(jordan.data(), 2).condition, 1e15);
  const Numbers near = {1.0, 1.0, 0.0, 1.0 + 1e-6};
  const double condition = diagonal_form(near.data(), 2).condition;
  EXPECT_NEAR(condition, 2e6, 2.0);
}

}  // namespace
}  // namespace mpssm::engine
