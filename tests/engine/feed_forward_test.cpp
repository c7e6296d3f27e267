// SPDX-License-Identifier: MIT
// Both fused passes: values by their definitions step by step, gradients by differences in double,
// one result for any number of workers.
#include "mpssm/engine/feed_forward.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "mpssm/engine/dropout.h"
#include "mpssm/engine/thread_pool.h"

namespace mpssm::engine {
namespace {

template <typename T = double>
std::vector<T> draw(std::int64_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<T> numbers(static_cast<std::size_t>(count));
  for (T& number : numbers) number = static_cast<T>(normal(random));
  return numbers;
}

/// Memory of exactly the size that was asked for.
class Room {
 public:
  explicit Room(std::int64_t bytes) : bytes_(bytes), memory_(static_cast<std::size_t>(bytes + 64)) {
    const auto at = reinterpret_cast<std::uintptr_t>(memory_.data());
    begin_ = memory_.data() + ((64 - at % 64) % 64);
  }
  Workspace workspace() { return {begin_, bytes_}; }

 private:
  std::int64_t bytes_;
  std::vector<std::byte> memory_;
  std::byte* begin_;
};

/// y = residual + drop(f(norm(x) W1' + b1) W2' + b2), all arguments in one vector so that any of
/// them can be moved.
struct Problem {
  std::int64_t rows, in, hidden, out;
  bool norm = true;
  bool residual = true;
  Activation activation = Activation::kGelu;
  Drop drop_hidden = {};
  Drop drop_out = {};
  Precision precision = Precision::kFloat32;

  enum { kX, kScale, kShift, kW1, kB1, kW2, kB2, kResidual, kCount };
  std::vector<std::int64_t> sizes() const {
    return {rows * in, in, in, hidden * in, hidden, out * hidden, out, rows * out};
  }
  template <typename T>
  std::vector<std::vector<T>> arguments() const {
    std::vector<std::vector<T>> all;
    std::uint64_t seed = 1;
    for (const std::int64_t size : sizes()) all.push_back(draw<T>(size, seed++));
    return all;
  }
  template <typename T>
  FeedForward<T> call(const std::vector<std::vector<T>>& a) const {
    FeedForward<T> call{rows, in, hidden, out, activation, drop_hidden, drop_out};
    call.x = a[kX].data();
    if (norm) {
      call.norm.scale = a[kScale].data();
      call.norm.shift = a[kShift].data();
    }
    call.w1 = a[kW1].data();
    call.b1 = a[kB1].data();
    call.w2 = a[kW2].data();
    call.b2 = a[kB2].data();
    if (residual) call.residual = a[kResidual].data();
    call.precision = precision;
    return call;
  }
};

std::vector<double> normalise(const std::vector<double>& x, std::int64_t width, const double* scale,
                              const double* shift) {
  std::vector<double> y = x;
  for (std::size_t begin = 0; begin < x.size(); begin += static_cast<std::size_t>(width)) {
    double mean = 0.0, variance = 0.0;
    for (std::int64_t j = 0; j < width; ++j) mean += x[begin + j] / width;
    for (std::int64_t j = 0; j < width; ++j) variance += std::pow(x[begin + j] - mean, 2) / width;
    for (std::int64_t j = 0; j < width; ++j) {
      y[begin + j] = (x[begin + j] - mean) / std::sqrt(variance + 1e-5) * scale[j] + shift[j];
    }
  }
  return y;
}

/// x W' + b for W [columns, inner]; b may be null.
std::vector<double> affine(const std::vector<double>& x, std::int64_t inner, const double* w,
                           const double* b, std::int64_t columns) {
  std::vector<double> y;
  for (std::size_t row = 0; row < x.size() / inner; ++row) {
    for (std::int64_t j = 0; j < columns; ++j) {
      double sum = b == nullptr ? 0.0 : b[j];
      for (std::int64_t i = 0; i < inner; ++i) sum += x[row * inner + i] * w[j * inner + i];
      y.push_back(sum);
    }
  }
  return y;
}

void drop_all(const Drop& how, std::vector<double>& x) {
  if (how.probability == 0.0) return;
  dropout(x.data(), static_cast<std::int64_t>(x.size()), how.seed, how.probability, x.data(),
          SerialExecutor());
}

std::vector<double> definition(const Problem& p, const std::vector<std::vector<double>>& a) {
  std::vector<double> x = a[Problem::kX];
  if (p.norm) x = normalise(x, p.in, a[Problem::kScale].data(), a[Problem::kShift].data());
  std::vector<double> hidden =
      affine(x, p.in, a[Problem::kW1].data(), a[Problem::kB1].data(), p.hidden);
  activate(p.activation, hidden.data(), static_cast<std::int64_t>(hidden.size()), hidden.data(),
           SerialExecutor());
  drop_all(p.drop_hidden, hidden);
  std::vector<double> y =
      affine(hidden, p.hidden, a[Problem::kW2].data(), a[Problem::kB2].data(), p.out);
  drop_all(p.drop_out, y);
  if (p.residual) {
    for (std::size_t i = 0; i < y.size(); ++i) y[i] += a[Problem::kResidual][i];
  }
  return y;
}

template <typename T>
struct Result {
  std::vector<T> y;
  std::vector<std::vector<T>> gradients;  // in the order of the arguments
  bool operator==(const Result&) const = default;
};

template <typename T>
Result<T> run(const Problem& p, const std::vector<std::vector<T>>& a, const std::vector<T>& grad,
              const Executor& executor) {
  FeedForward<T> call = p.call(a);
  Result<T> result;
  result.y.resize(static_cast<std::size_t>(p.rows * p.out));
  std::vector<kernels::Bf16> kept_x(static_cast<std::size_t>(p.rows * p.in));
  if (p.precision == Precision::kBf16) call.kept_x = kept_x.data();
  Room forward_room(forward_bytes(call, executor.workers()));
  forward(call, result.y.data(), forward_room.workspace(), executor);
  if (p.precision == Precision::kBf16) call.x = nullptr;  // not read any more
  for (const std::int64_t size : p.sizes()) {
    result.gradients.emplace_back(static_cast<std::size_t>(size));
  }
  auto& g = result.gradients;
  FeedForwardGradients<T> out;
  out.x = g[Problem::kX].data();
  out.norm = {g[Problem::kScale].data(), g[Problem::kShift].data()};
  out.w1 = g[Problem::kW1].data();
  out.b1 = g[Problem::kB1].data();
  out.w2 = g[Problem::kW2].data();
  out.b2 = g[Problem::kB2].data();
  Room backward_room(backward_bytes(call, executor.workers()));
  backward(call, grad.data(), out, backward_room.workspace(), executor);
  if (p.residual) g[Problem::kResidual] = grad;
  return result;
}

void expect_near(const std::vector<double>& expected, const std::vector<double>& got,
                 double tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], expected[i], tolerance * (1.0 + std::abs(expected[i]))) << "at " << i;
  }
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

TEST(FeedForward, HasTheValuesAndGradientsOfItsDefinition) {
  const Drop hidden{3, 0.4}, out{4, 0.25};
  const std::vector<Problem> problems = {
      {5, 3, 7, 4},
      {5, 3, 7, 4, /*norm=*/false, /*residual=*/false, Activation::kTanh},
      {5, 3, 7, 4, true, true, Activation::kGelu, hidden, out},
      {5, 3, 7, 4, false, true, Activation::kIdentity, hidden, {}},
      {1, 1, 1, 1, true, false, Activation::kTanh, {}, out},
      {130, 2, 3, 2, true, true, Activation::kGelu, hidden, out},  // two tiles
  };
  for (std::size_t k = 0; k < problems.size(); ++k) {
    SCOPED_TRACE(k);
    const Problem& p = problems[k];
    const auto a = p.arguments<double>();
    const auto grad = draw(p.rows * p.out, 99);
    const auto result = run(p, a, grad, SerialExecutor());
    expect_near(definition(p, a), result.y, 1e-12);
    for (std::size_t which = 0; which < Problem::kCount; ++which) {
      const bool absent = (!p.norm && (which == Problem::kScale || which == Problem::kShift)) ||
                          (!p.residual && which == Problem::kResidual);
      if (absent) continue;
      std::vector<double> expected;
      for (std::size_t i = 0; i < a[which].size(); ++i) {
        auto moved = a;
        moved[which][i] += 1e-6;
        const double above = dot(definition(p, moved), grad);
        moved[which][i] -= 2e-6;
        expected.push_back((above - dot(definition(p, moved), grad)) / 2e-6);
      }
      SCOPED_TRACE(which);
      expect_near(expected, result.gradients[which], 2e-6);
    }
  }
}

TEST(FeedForward, GivesTheSameBitsOnAnyNumberOfWorkers) {
  const Problem p{5000, 33, 40, 17, true, true, Activation::kGelu, {5, 0.3}, {6, 0.1}};
  const auto a = p.arguments<float>();
  const auto grad = draw<float>(p.rows * p.out, 99);
  const auto one = run(p, a, grad, SerialExecutor());
  for (const std::int64_t workers : {2, 3, 7}) EXPECT_EQ(run(p, a, grad, ThreadPool(workers)), one);
}

/// y = norm(x) W and its gradients of x, W, scale and shift, one after the other.
template <typename T>
std::vector<T> run_norm_linear(const NormLinear<T>& call, const std::vector<T>& grad,
                               const Executor& executor) {
  std::vector<T> all(static_cast<std::size_t>(call.rows * (call.out + call.in) +
                                              call.in * call.out + 2 * call.in));
  T* const y = all.data();
  T* const grad_x = y + call.rows * call.out;
  T* const grad_w = grad_x + call.rows * call.in;
  T* const grad_scale = grad_w + call.in * call.out;
  Room forward_room(forward_bytes(call, executor.workers()));
  forward(call, y, forward_room.workspace(), executor);
  Room backward_room(backward_bytes(call, executor.workers()));
  backward(call, grad.data(), grad_x, grad_w, {grad_scale, grad_scale + call.in},
           backward_room.workspace(), executor);
  return all;
}

TEST(NormLinear, HasTheValuesAndGradientsOfItsDefinition) {
  for (const bool norm : {true, false}) {
    NormLinear<double> call{.rows = 101, .in = 3, .out = 5};
    std::vector<std::vector<double>> a = {draw(call.rows * call.in, 1), draw(call.in * call.out, 2),
                                          draw(call.in, 3), draw(call.in, 4)};
    const auto grad = draw(call.rows * call.out, 5);
    const auto value = [&] {
      std::vector<double> transposed(a[1].size());
      for (std::int64_t i = 0; i < call.in; ++i) {
        for (std::int64_t j = 0; j < call.out; ++j) {
          transposed[j * call.in + i] = a[1][i * call.out + j];
        }
      }
      const auto x = norm ? normalise(a[0], call.in, a[2].data(), a[3].data()) : a[0];
      return affine(x, call.in, transposed.data(), nullptr, call.out);
    };
    call.x = a[0].data();
    call.w = a[1].data();
    if (norm) call.norm = {a[2].data(), a[3].data()};
    const auto got = run_norm_linear(call, grad, SerialExecutor());
    std::vector<double> expected = value();
    for (std::size_t which = 0; which < a.size(); ++which) {
      for (double& number : a[which]) {
        const double at = number;
        number = at + 1e-6;
        const double above = dot(value(), grad);
        number = at - 1e-6;
        const double slope = (above - dot(value(), grad)) / 2e-6;
        number = at;
        expected.push_back(which < 2 || norm ? slope : 0.0);
      }
    }
    expect_near(expected, got, 2e-6);
  }
}

TEST(NormLinear, GivesTheSameBitsOnAnyNumberOfWorkers) {
  const std::int64_t rows = 5000, in = 33, out = 20;
  const auto x = draw<float>(rows * in, 1), w = draw<float>(in * out, 2),
             scale = draw<float>(in, 3), shift = draw<float>(in, 4),
             grad = draw<float>(rows * out, 5);
  const NormLinear<float> call{rows, in, out, x.data(), {scale.data(), shift.data()}, w.data()};
  const auto one = run_norm_linear(call, grad, SerialExecutor());
  for (const std::int64_t workers : {2, 3, 7}) {
    EXPECT_EQ(run_norm_linear(call, grad, ThreadPool(workers)), one);
  }
}

/// |got - expected| over |expected|, both as vectors.
double relative_error(const std::vector<float>& expected, const std::vector<float>& got) {
  double error = 0.0, size = 0.0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    error += std::pow(got[i] - expected[i], 2);
    size += std::pow(expected[i], 2);
  }
  return std::sqrt(error / size);
}

// Two products of rounded factors, and what is kept is rounded, too: each loses up to 2^-8 of a
// number, 2^-9 on average. 1 % is as much as 25 of them at random.
TEST(FeedForward, InBf16IsFloat32WithinTheErrorOfItsRoundings) {
  const Drop hidden{3, 0.4}, out{4, 0.25};
  std::vector<Problem> problems = {
      {500, 33, 40, 17},
      {500, 64, 64, 64, /*norm=*/false, /*residual=*/false, Activation::kTanh},
      {500, 64, 96, 64, true, true, Activation::kGelu, hidden, out},
  };
  for (Problem& p : problems) {
    auto a = p.arguments<float>();
    for (float& number : a[Problem::kX])
      number += 300.0f * (p.norm ? 1.0f : 0.0f);  // no digits left
    for (float& number : a[Problem::kW1]) number *= 0.1f;
    for (float& number : a[Problem::kW2]) number *= 0.1f;
    const auto grad = draw<float>(p.rows * p.out, 99);
    p.precision = Precision::kFloat32;
    const auto exact = run(p, a, grad, SerialExecutor());
    p.precision = Precision::kBf16;
    const auto got = run(p, a, grad, SerialExecutor());
    EXPECT_LT(relative_error(exact.y, got.y), 0.01);
    EXPECT_GT(relative_error(exact.y, got.y), 1e-5) << "nothing was rounded";
    for (std::size_t which = 0; which < Problem::kCount; ++which) {
      const bool absent = (!p.norm && (which == Problem::kScale || which == Problem::kShift)) ||
                          (!p.residual && which == Problem::kResidual);
      if (absent) continue;
      EXPECT_LT(relative_error(exact.gradients[which], got.gradients[which]), 0.01) << which;
    }
    for (const std::int64_t workers : {2, 7}) {
      EXPECT_TRUE(run(p, a, grad, ThreadPool(workers)) == got);
    }
  }
}

TEST(NormLinear, InBf16IsFloat32WithinTheErrorOfItsRoundings) {
  const std::int64_t rows = 3000, in = 33, out = 20;
  const auto x = draw<float>(rows * in, 1), w = draw<float>(in * out, 2),
             scale = draw<float>(in, 3), shift = draw<float>(in, 4),
             grad = draw<float>(rows * out, 5);
  for (const bool norm : {true, false}) {
    NormLinear<float> call{.rows = rows, .in = in, .out = out, .x = x.data(), .w = w.data()};
    if (norm) call.norm = {scale.data(), shift.data()};
    const auto exact = run_norm_linear(call, grad, SerialExecutor());
    std::vector<kernels::Bf16> kept(x.size());
    call.precision = Precision::kBf16;
    for (const bool keeps : {true, false}) {
      call.kept_x = keeps ? kept.data() : nullptr;
      const auto got = run_norm_linear(call, grad, SerialExecutor());
      EXPECT_LT(relative_error(exact, got), 0.01);
      EXPECT_GT(relative_error(exact, got), 1e-5) << "nothing was rounded";
      EXPECT_TRUE(run_norm_linear(call, grad, ThreadPool(3)) == got);
    }
  }
}

}  // namespace
}  // namespace mpssm::engine
