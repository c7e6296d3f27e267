// SPDX-License-Identifier: MIT
#include "mpssm/engine/causal_convolution.h"

#include <gtest/gtest.h>

#include "tests/engine/numbers.h"

namespace mpssm::engine {
namespace {

struct Shape {
  std::int64_t batch, steps, nodes, width, taps;
};

template <typename T>
CausalConvolution<T> args_of(const Shape& shape, const std::vector<T>& x,
                             const std::vector<T>& kernel) {
  return {.batch = shape.batch,
          .steps = shape.steps,
          .nodes = shape.nodes,
          .width = shape.width,
          .taps = shape.taps,
          .x = x.data(),
          .kernel = kernel.data()};
}

TEST(CausalConvolution, IsItsDefinitionAndItsAdjointItsDerivative) {
  // A kernel shorter than the sequence, as long, and longer.
  for (const std::int64_t taps : {1, 2, 5, 8}) {
    const Shape shape{2, 5, 3, 4, taps};
    const Numbers x = random_numbers(2 * 5 * 3 * 4, 1);
    const Numbers kernel = random_numbers(taps * 4, 2);
    const auto convolved = [&](const Numbers& in, const Numbers& by) {
      Numbers y(in.size(), -1.0);
      causal_convolution(args_of(shape, in, by), y.data(), SerialExecutor());
      return y;
    };
    Numbers expected;
    for (std::int64_t b = 0; b < 2; ++b) {
      for (std::int64_t t = 0; t < 5; ++t) {
        for (std::int64_t number = 0; number < 12; ++number) {
          double sum = 0.0;
          for (std::int64_t s = 0; s <= t && s < taps; ++s) {
            sum += kernel[s * 4 + number % 4] * x[(b * 5 + t - s) * 12 + number];
          }
          expected.push_back(sum);
        }
      }
    }
    expect_near(expected, convolved(x, kernel), 1e-14);

    const Numbers grad = random_numbers(std::ssize(x), 3);
    Numbers grad_x(x.size(), -1.0), grad_kernel(kernel.size(), -1.0);
    const auto args = args_of(shape, x, kernel);
    Numbers scratch(static_cast<std::size_t>(causal_convolution_scratch(args)));
    causal_convolution_adjoint(args, grad.data(), grad_x.data(), grad_kernel.data(), scratch.data(),
                               SerialExecutor());
    expect_near(differences([&](const Numbers& in) { return convolved(in, kernel); }, x, grad),
                grad_x);
    expect_near(differences([&](const Numbers& by) { return convolved(x, by); }, kernel, grad),
                grad_kernel);
  }
}

TEST(CausalConvolution, HasTheSameBitsOnAnyNumberOfWorkers) {
  const Shape shape{3, 7, 1500, 6, 7};
  const auto x = random_numbers<float>(3 * 7 * 1500 * 6, 1);
  const auto kernel = random_numbers<float>(7 * 6, 2);
  const auto args = args_of(shape, x, kernel);
  expect_same_bits([&](const Executor& executor) {
    std::vector<float> out(2 * x.size() + kernel.size());
    std::vector<float> scratch(static_cast<std::size_t>(causal_convolution_scratch(args)));
    causal_convolution(args, out.data(), executor);
    causal_convolution_adjoint(args, out.data(), out.data() + x.size(), out.data() + 2 * x.size(),
                               scratch.data(), executor);
    return out;
  });
}

}  // namespace
}  // namespace mpssm::engine
