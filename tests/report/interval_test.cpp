// SPDX-License-Identifier: MIT
#include "mpssm/report/interval.h"

#include <cmath>
#include <limits>
#include <numbers>
#include <stdexcept>

#include <gtest/gtest.h>

namespace mpssm::report {
namespace {

// Printed tables of Student's t.
TEST(StudentT, QuantilesAreThoseOfTheTables) {
  struct Known {
    double p, freedom, quantile;
  };
  for (const auto& known :
       {Known{0.975, 1, 12.7062}, Known{0.975, 2, 4.3027}, Known{0.975, 3, 3.1824},
        Known{0.975, 4, 2.7764}, Known{0.975, 9, 2.2622}, Known{0.975, 30, 2.0423},
        Known{0.975, 120, 1.9799}, Known{0.95, 5, 2.0150}, Known{0.99, 10, 2.7638},
        Known{0.9995, 1, 636.619}, Known{0.75, 3, 0.7649}}) {
    EXPECT_NEAR(student_t_quantile(known.p, known.freedom), known.quantile,
                6e-5 + 1e-6 * known.quantile)
        << known.p << ", " << known.freedom;
  }
}

TEST(StudentT, QuantilesInClosedForm) {
  for (const double p : {0.501, 0.6, 0.9, 0.999}) {
    const double cauchy = std::tan(std::numbers::pi * (p - 0.5));
    EXPECT_NEAR(student_t_quantile(p, 1.0) / cauchy, 1.0, 1e-9) << p;
    const double two = (2.0 * p - 1.0) / std::sqrt(2.0 * p * (1.0 - p));
    EXPECT_NEAR(student_t_quantile(p, 2.0) / two, 1.0, 1e-9) << p;
  }
}

TEST(StudentT, IsSymmetricGrowsAndTendsToTheNormal) {
  EXPECT_NEAR(student_t_quantile(0.5, 3.0), 0.0, 1e-12);
  EXPECT_DOUBLE_EQ(student_t_quantile(0.025, 7.0), -student_t_quantile(0.975, 7.0));
  EXPECT_NEAR(student_t_quantile(0.975, 1e7), 1.959964, 1e-5);
  // Between the whole degrees of freedom.
  EXPECT_LT(student_t_quantile(0.975, 4.0), student_t_quantile(0.975, 3.9));
  EXPECT_GT(student_t_quantile(0.975, 3.0), student_t_quantile(0.975, 3.9));
}

TEST(StudentT, RefusesWhatIsNoProbability) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double p : {0.0, 1.0, -1.0, nan}) {
    EXPECT_THROW(student_t_quantile(p, 3.0), std::invalid_argument);
  }
  for (const double freedom : {0.0, -1.0, nan}) {
    EXPECT_THROW(student_t_quantile(0.9, freedom), std::invalid_argument);
  }
}

TEST(Difference, ToAnExactNumberIsStudentsInterval) {
  const Difference of = difference({.value = 5.0, .deviation = 2.0, .count = 4}, {.value = 4.0});
  EXPECT_DOUBLE_EQ(of.value, 1.0);
  EXPECT_NEAR(of.low, 1.0 - 3.18245, 1e-4);
  EXPECT_NEAR(of.high, 1.0 + 3.18245, 1e-4);
  EXPECT_TRUE(of.holds_zero());
}

// Equal deviations and counts: Welch's degrees of freedom are 2 (n - 1).
TEST(Difference, OfTwoMeansIsWelchsInterval) {
  const Difference of = difference({.value = 1.0, .deviation = 0.3, .count = 6},
                                   {.value = 2.0, .deviation = 0.3, .count = 6});
  const double width = 2.228139 * 0.3 * std::sqrt(2.0 / 6.0);
  EXPECT_NEAR(of.low, -1.0 - width, 1e-6);
  EXPECT_NEAR(of.high, -1.0 + width, 1e-6);
  EXPECT_FALSE(of.holds_zero());
  // One side decides: its degrees of freedom.
  const Difference lopsided = difference({.value = 0.0, .deviation = 1e-9, .count = 100},
                                         {.value = 0.0, .deviation = 1.0, .count = 3});
  EXPECT_NEAR(lopsided.high, 4.302653 / std::sqrt(3.0), 1e-5);
}

TEST(Difference, WithoutSpreadHasNoWidth) {
  const Difference of = difference({.value = 3.0, .deviation = 0.0, .count = 2}, {.value = 3.0});
  EXPECT_EQ(of.low, 0.0);
  EXPECT_EQ(of.high, 0.0);
  EXPECT_TRUE(of.holds_zero());
}

TEST(Difference, OfOneRunIsRefused) {
  EXPECT_THROW(difference({.value = 1.0, .count = 1}, {.value = 0.0}), std::invalid_argument);
  EXPECT_THROW(difference({.value = 1.0, .count = 4}, {.value = 0.0, .count = 1}),
               std::invalid_argument);
}

}  // namespace
}  // namespace mpssm::report
