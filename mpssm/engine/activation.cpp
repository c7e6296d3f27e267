// SPDX-License-Identifier: MIT
#include "mpssm/engine/activation.h"

#include <cmath>
#include <numbers>
#include <type_traits>

#include "mpssm/engine/tasks.h"
#include "mpssm/kernels/gelu.h"

namespace mpssm::engine {
namespace {

constexpr double kLeakySlope = 0.01;

double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }
double normal_pdf(double x) {
  return std::exp(-0.5 * x * x) * (0.5 * std::numbers::inv_sqrtpi * std::numbers::sqrt2);
}

template <typename T>
T value(Activation activation, T x) {
  switch (activation) {
    case Activation::kGelu:
      return static_cast<T>(x * normal_cdf(x));
    case Activation::kRelu:
      return x > T{0} || std::isnan(x) ? x : T{0};
    case Activation::kTanh:
      return std::tanh(x);
    case Activation::kLeakyRelu:
      return x > T{0} ? x : static_cast<T>(kLeakySlope) * x;
    case Activation::kIdentity:
      break;
  }
  return x;
}

template <typename T>
T slope(Activation activation, T x) {
  switch (activation) {
    case Activation::kGelu:
      return static_cast<T>(normal_cdf(x) + x * normal_pdf(x));
    case Activation::kRelu:
      return x > T{0} ? T{1} : T{0};
    case Activation::kTanh: {
      const T y = std::tanh(x);
      return T{1} - y * y;
    }
    case Activation::kLeakyRelu:
      return x > T{0} ? T{1} : static_cast<T>(kLeakySlope);
    case Activation::kIdentity:
      break;
  }
  return T{1};
}

}  // namespace

template <typename T>
void activate(Activation activation, const T* x, std::int64_t count, T* y,
              const Executor& executor) {
  for_numbers(executor, count, [&](std::int64_t begin, std::int64_t end) {
    if constexpr (std::is_same_v<T, float>) {
      if (activation == Activation::kGelu) return kernels::gelu(x, y, begin, end);
    }
    for (std::int64_t i = begin; i < end; ++i) y[i] = value(activation, x[i]);
  });
}

template <typename T>
void activate_and_slope(Activation activation, const T* x, std::int64_t count, T* y, T* slope_of_x,
                        const Executor& executor) {
  for_numbers(executor, count, [&](std::int64_t begin, std::int64_t end) {
    if constexpr (std::is_same_v<T, float>) {
      if (activation == Activation::kGelu) {
        return kernels::gelu_and_slope(x, y, slope_of_x, begin, end);
      }
    }
    for (std::int64_t i = begin; i < end; ++i) {
      const T at = x[i];
      y[i] = value(activation, at);
      slope_of_x[i] = slope(activation, at);
    }
  });
}

template <typename T>
void activate_adjoint(Activation activation, const T* x, const T* grad, std::int64_t count,
                      T* grad_x, const Executor& executor) {
  for_numbers(executor, count, [&](std::int64_t begin, std::int64_t end) {
    if constexpr (std::is_same_v<T, float>) {
      if (activation == Activation::kGelu) {
        return kernels::gelu_adjoint(x, grad, grad_x, begin, end);
      }
    }
    for (std::int64_t i = begin; i < end; ++i) grad_x[i] = slope(activation, x[i]) * grad[i];
  });
}

template void activate<float>(Activation, const float*, std::int64_t, float*, const Executor&);
template void activate<double>(Activation, const double*, std::int64_t, double*, const Executor&);
template void activate_and_slope<float>(Activation, const float*, std::int64_t, float*, float*,
                                        const Executor&);
template void activate_and_slope<double>(Activation, const double*, std::int64_t, double*, double*,
                                         const Executor&);
template void activate_adjoint<float>(Activation, const float*, const float*, std::int64_t, float*,
                                      const Executor&);
template void activate_adjoint<double>(Activation, const double*, const double*, std::int64_t,
                                       double*, const Executor&);

}  // namespace mpssm::engine
