// SPDX-License-Identifier: MIT
// The recurrence of two processes that bring each other their halo, against its definition.
#include "mpssm/engine/halo_recurrence.h"

#include <barrier>
#include <complex>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "mpssm/engine/thread_pool.h"

namespace mpssm::engine {
namespace {

constexpr std::int64_t kNodes = 6;
constexpr std::int64_t kOwn = 3;  // of each of two
constexpr std::int64_t kChannels = 4;

using Numbers = std::vector<double>;
using Complex = std::complex<double>;

/// Nothing about it is symmetric.
double entry(std::int64_t i, std::int64_t j) {
  return (i * 2 + j * 3) % 4 == 0 ? 0.2 + 0.1 * static_cast<double>(i - j) : 0.0;
}

/// X = sum_i sigma^i A^i C for all nodes, term by term.
Numbers defined(const Numbers& c, const Numbers& sigma, std::int64_t steps) {
  std::vector<Complex> term(kNodes * kChannels / 2);
  for (std::size_t i = 0; i < term.size(); ++i) term[i] = {c[2 * i], c[2 * i + 1]};
  std::vector<Complex> sum = term;
  for (std::int64_t step = 1; step < steps; ++step) {
    std::vector<Complex> next(term.size());
    for (std::int64_t i = 0; i < kNodes; ++i) {
      for (std::int64_t j = 0; j < kNodes; ++j) {
        for (std::int64_t k = 0; k < kChannels / 2; ++k) {
          next[i * kChannels / 2 + k] +=
              Complex(sigma[2 * k], sigma[2 * k + 1]) * entry(i, j) * term[j * kChannels / 2 + k];
        }
      }
    }
    term = next;
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += term[i];
  }
  Numbers x;
  for (const Complex& z : sum) x.insert(x.end(), {z.real(), z.imag()});
  return x;
}

/// Own rows of A or A', every node of the other process in the halo: in its first ring, the others
/// of which are empty.
struct Rows {
  std::vector<std::int64_t> row_ptr = {0};
  std::vector<std::int32_t> col;
  Numbers value;
  HaloRows<double> view;

  Rows(std::int64_t process, bool transposed, std::int64_t rings) {
    const std::int64_t num_rows = rings > 1 ? kNodes : kOwn;
    for (std::int64_t place = 0; place < num_rows; ++place) {
      const std::int64_t i = (process * kOwn + place) % kNodes;
      for (std::int64_t j = 0; j < kNodes; ++j) {
        const double a = transposed ? entry(j, i) : entry(i, j);
        if (a == 0.0) continue;
        const bool is_own = j / kOwn == process;
        col.push_back(static_cast<std::int32_t>(j % kOwn + (is_own ? 0 : kOwn)));
        value.push_back(a);
      }
      row_ptr.push_back(std::ssize(col));
    }
    view = {.a = {num_rows, row_ptr.data(), col.data(), value.data()}, .halo = kOwn, .fill = {}};
    if (rings > 1) {
      view.within.assign(rings + 1, kNodes);
      view.within[0] = kOwn;
    }
  }
};

struct Found {
  Numbers x;
  Numbers grad_c;
  Numbers grad_sigma;  // summed over parts of one node each
  std::int64_t fills = 0;
};

Found by_two(const Numbers& c, const Numbers& sigma, const Numbers& grad, std::int64_t steps,
             std::int64_t threads, std::int64_t rings = 1) {
  Found found{Numbers(c.size()), Numbers(c.size()), Numbers(kChannels)};
  std::barrier meet(2);
  double* shown[2] = {};
  Numbers of_parts[2];
  const auto process = [&](std::int64_t p) {
    const ThreadPool pool(threads);
    Rows rows(p, false, rings);
    Rows transposed(p, true, rings);
    const auto fill = [&, p](double* x, std::int64_t width) {
      shown[p] = x;
      if (p == 0) ++found.fills;
      meet.arrive_and_wait();
      std::copy_n(shown[1 - p], kOwn * width, x + kOwn * width);
      meet.arrive_and_wait();
    };
    rows.view.fill = transposed.view.fill = fill;
    const std::vector<std::int64_t> parts = {0, 1, 2, 3};
    const HaloRecurrence<double> call{.rows = &rows.view,
                                      .transposed = &transposed.view,
                                      .channels = kChannels,
                                      .num_steps = steps,
                                      .parts = parts};
    const std::int64_t first = p * kOwn * kChannels;
    Numbers scratch(std::max(forward_scratch(call), backward_scratch(call)));
    forward(call, c.data() + first, sigma.data(), found.x.data() + first, scratch.data(), pool);
    of_parts[p].resize(3 * kChannels);
    backward(call, c.data() + first, sigma.data(), grad.data() + first, found.grad_c.data() + first,
             of_parts[p].data(), scratch.data(), pool);
  };
  std::thread other(process, 1);
  process(0);
  other.join();
  for (const Numbers& parts : of_parts) {
    for (std::size_t i = 0; i < parts.size(); ++i) found.grad_sigma[i % kChannels] += parts[i];
  }
  return found;
}

Numbers some_numbers(std::size_t count, double start) {
  Numbers numbers;
  for (std::size_t i = 0; i < count; ++i) {
    numbers.push_back(std::sin(start + 1.7 * static_cast<double>(i)));
  }
  return numbers;
}

TEST(HaloRecurrence, OfTwoProcessesIsTheOneOfAllNodes) {
  const Numbers c = some_numbers(kNodes * kChannels, 0.3);
  const Numbers grad = some_numbers(kNodes * kChannels, 1.1);
  const Numbers sigma = {0.8, 0.3, -0.5, 0.6};
  for (const std::int64_t steps : {1, 2, 5}) {
    const Found found = by_two(c, sigma, grad, steps, 1);
    const Numbers expected = defined(c, sigma, steps);
    for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(found.x[i], expected[i], 1e-12);
    // The gradient of <grad, X>, by differences.
    const auto slope = [&](Numbers from, std::size_t i, bool of_sigma) {
      constexpr double kStep = 1e-5;
      double sum[2] = {};
      for (const int side : {0, 1}) {
        Numbers changed = from;
        changed[i] += side == 1 ? kStep : -kStep;
        const Numbers x = defined(of_sigma ? c : changed, of_sigma ? changed : sigma, steps);
        for (std::size_t n = 0; n < x.size(); ++n) sum[side] += x[n] * grad[n];
      }
      return (sum[1] - sum[0]) / (2.0 * kStep);
    };
    for (std::size_t i = 0; i < c.size(); ++i) {
      EXPECT_NEAR(found.grad_c[i], slope(c, i, false), 1e-7) << steps << " steps, " << i;
    }
    for (std::size_t i = 0; i < sigma.size(); ++i) {
      EXPECT_NEAR(found.grad_sigma[i], slope(sigma, i, true), 1e-7) << steps << " steps, " << i;
    }
    EXPECT_EQ(found.fills, 2 * (steps - 1));
    const auto expect_same = [&](const Found& again) {
      EXPECT_EQ(again.x, found.x);
      EXPECT_EQ(again.grad_c, found.grad_c);
      EXPECT_EQ(again.grad_sigma, found.grad_sigma);
    };
    expect_same(by_two(c, sigma, grad, steps, 3));
    for (const std::int64_t rings : {2, 3, 4, 7}) {
      const Found again = by_two(c, sigma, grad, steps, 2, rings);
      expect_same(again);
      EXPECT_EQ(again.fills, 2 * ((steps - 1 + rings - 1) / rings)) << rings << " rings";
    }
  }
}

}  // namespace
}  // namespace mpssm::engine
