// SPDX-License-Identifier: MIT
// Random numbers, gradients by differences, and results on several numbers of workers.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "mpssm/engine/thread_pool.h"

namespace mpssm::engine {

using Numbers = std::vector<double>;

template <typename T = double>
std::vector<T> random_numbers(std::int64_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<T> numbers(static_cast<std::size_t>(count));
  for (T& number : numbers) number = static_cast<T>(normal(random));
  return numbers;
}

/// d <grad, f(x)> / dx by central differences.
inline Numbers differences(const std::function<Numbers(const Numbers&)>& f, const Numbers& x,
                           const Numbers& grad) {
  Numbers result;
  for (std::size_t i = 0; i < x.size(); ++i) {
    double sum = 0.0;
    for (const double sign : {1.0, -1.0}) {
      Numbers moved = x;
      moved[i] += sign * 1e-6;
      const Numbers y = f(moved);
      for (std::size_t j = 0; j < y.size(); ++j) sum += sign * grad[j] * y[j];
    }
    result.push_back(sum / 2e-6);
  }
  return result;
}

inline void expect_near(const Numbers& expected, const Numbers& got, double tolerance = 1e-7) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], expected[i], tolerance * (1.0 + std::abs(expected[i]))) << "at " << i;
  }
}

/// compute(executor) gives the same on any number of workers.
template <typename Compute>
void expect_same_bits(const Compute& compute) {
  const auto one = compute(SerialExecutor());
  for (const std::int64_t workers : {2, 3, 7}) EXPECT_EQ(compute(ThreadPool(workers)), one);
}

}  // namespace mpssm::engine
