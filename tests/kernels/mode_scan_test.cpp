// SPDX-License-Identifier: MIT
#include "mpssm/kernels/mode_scan.h"

#include <complex>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "mpssm/base/random.h"

#include "tests/kernels/every_target.h"

namespace mpssm::kernels {
namespace {

using Complex = std::complex<double>;

constexpr std::int64_t kBatch = 2;
constexpr std::int64_t kSteps = 4;
constexpr std::int64_t kRows = 3;

/// Arguments of one number of channels, and their numbers as plain loops see them.
template <typename T>
struct Case {
  explicit Case(std::int64_t count) : channels(count), random(static_cast<std::uint64_t>(count)) {
    lambda = {-0.9, 0.0, 1.0};
    for (std::int64_t c = 0; c < channels; ++c) {
      sigma_re.push_back(random.unit() - 0.5);
      sigma_im.push_back(random.unit() - 0.5);
    }
    v = draw(kBatch * kSteps * kRows);
    grad = draw(kBatch * kSteps * kRows);
    initial = draw(kBatch * kRows);
    scratch.resize(2 * channels);
  }
  std::vector<T> draw(std::int64_t modes) {
    std::vector<T> numbers(modes * 2 * channels);
    for (T& number : numbers) number = static_cast<T>(2.0 * random.unit() - 1.0);
    return numbers;
  }
  ModeScanArgs<T> args(bool has_initial) {
    return {.batch = kBatch,
            .num_steps = kSteps,
            .rows = kRows,
            .channels = channels,
            .lambda = lambda.data(),
            .sigma_re = sigma_re.data(),
            .sigma_im = sigma_im.data(),
            .initial = has_initial ? initial.data() : nullptr,
            .scratch = scratch.data()};
  }
  /// Of the mode; t < 0 is the initial state.
  std::int64_t at(std::int64_t b, std::int64_t t, std::int64_t row, std::int64_t c) const {
    return ((t < 0 ? b : b * kSteps + t) * kRows + row) * 2 * channels + 2 * c;
  }
  Complex factor(std::int64_t row, std::int64_t c) const {
    return lambda[row] * Complex(sigma_re[c], sigma_im[c]);
  }

  std::int64_t channels;
  base::Random random;
  std::vector<double> lambda, sigma_re, sigma_im;
  std::vector<T> v, grad, initial, scratch;
};

template <typename T>
Complex pair(const std::vector<T>& numbers, std::int64_t at) {
  return {numbers[at], numbers[at + 1]};
}

template <typename T>
class ModeScanKernel : public ::testing::Test {
 protected:
  static constexpr double kTolerance = 32.0 * std::numeric_limits<T>::epsilon();
  static void expect_near(const std::vector<T>& numbers, std::int64_t at, Complex expected) {
    EXPECT_NEAR(numbers[at], expected.real(), kTolerance);
    EXPECT_NEAR(numbers[at + 1], expected.imag(), kTolerance);
  }
  /// Calls check(case, has initial state) for numbers of channels around every vector width.
  template <typename Check>
  static void for_every_case(const Check& check) {
    for_every_target([&] {
      for (const std::int64_t channels : {1, 2, 3, 4, 5, 8, 15, 16, 17, 33}) {
        for (const bool has_initial : {false, true}) {
          SCOPED_TRACE(channels);
          Case<T> c(channels);
          check(c, has_initial);
        }
      }
    });
  }
};
using Reals = ::testing::Types<float, double>;
TYPED_TEST_SUITE(ModeScanKernel, Reals);

TYPED_TEST(ModeScanKernel, IsTheScalarRecurrence) {
  TestFixture::for_every_case([](auto& c, bool has_initial) {
    auto z = c.v;
    mode_scan(c.args(has_initial), z.data(), 1, kRows);
    for (std::int64_t b = 0; b < kBatch; ++b) {
      for (std::int64_t row = 0; row < kRows; ++row) {
        for (std::int64_t j = 0; j < c.channels; ++j) {
          Complex state = has_initial ? pair(c.initial, c.at(b, -1, row, j)) : 0.0;
          for (std::int64_t t = 0; t < kSteps; ++t) {
            const Complex v = pair(c.v, c.at(b, t, row, j));
            state = c.factor(row, j) * state + v;
            TestFixture::expect_near(z, c.at(b, t, row, j), row == 0 ? v : state);
          }
        }
      }
    }
  });
}

TYPED_TEST(ModeScanKernel, AdjointIsTheRecurrenceBackwards) {
  TestFixture::for_every_case([](auto& c, bool has_initial) {
    const auto args = c.args(has_initial);
    auto z = c.v;
    mode_scan(args, z.data(), 0, kRows);
    auto grad = c.grad;
    auto grad_initial = c.initial;
    std::vector<double> sigma_re(c.channels, 1.0);  // what rows give is added
    std::vector<double> sigma_im(c.channels, 2.0);
    mode_scan_adjoint(args, z.data(), grad.data(), has_initial ? grad_initial.data() : nullptr,
                      sigma_re.data(), sigma_im.data(), 0, kRows);
    for (std::int64_t j = 0; j < c.channels; ++j) {
      Complex of_sigma(1.0, 2.0);
      for (std::int64_t b = 0; b < kBatch; ++b) {
        for (std::int64_t row = 0; row < kRows; ++row) {
          const Complex back = std::conj(c.factor(row, j));
          Complex g = 0.0;
          for (std::int64_t t = kSteps - 1; t >= 0; --t) {
            g = pair(c.grad, c.at(b, t, row, j)) + back * g;
            TestFixture::expect_near(grad, c.at(b, t, row, j), g);
            Complex before = 0.0;
            if (t > 0) before = pair(z, c.at(b, t - 1, row, j));
            if (t == 0 && has_initial) before = pair(c.initial, c.at(b, -1, row, j));
            of_sigma += c.lambda[row] * g * std::conj(before);
          }
          if (has_initial) TestFixture::expect_near(grad_initial, c.at(b, -1, row, j), back * g);
        }
      }
      EXPECT_NEAR(sigma_re[j], of_sigma.real(), 10.0 * TestFixture::kTolerance);
      EXPECT_NEAR(sigma_im[j], of_sigma.imag(), 10.0 * TestFixture::kTolerance);
    }
  });
}

}  // namespace
}  // namespace mpssm::kernels
