// SPDX-License-Identifier: MIT
// Dense layers, norm, nonlinearities, dropout and pooling: values by their definitions, gradients
// by differences, one result for any number of workers.
#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "mpssm/engine/activation.h"
#include "mpssm/engine/dropout.h"
#include "mpssm/engine/layer_norm.h"
#include "mpssm/engine/linear.h"
#include "mpssm/engine/pool.h"
#include "mpssm/engine/thread_pool.h"

#include "tests/engine/numbers.h"

namespace mpssm::engine {
namespace {

TEST(Linear, MultipliesAddsAndTransposes) {
  const std::int64_t batch = 2, rows = 5, inner = 3, columns = 4;
  const Numbers x = random_numbers(batch * rows * inner, 1);
  const Numbers w = random_numbers(inner * columns, 2);
  const Numbers bias = random_numbers(columns, 3);
  for (const Transpose transpose : {Transpose::kNo, Transpose::kYes}) {
    Numbers y(static_cast<std::size_t>(batch * rows * columns)), expected;
    for (std::int64_t r = 0; r < batch * rows; ++r) {
      for (std::int64_t j = 0; j < columns; ++j) {
        double sum = bias[j];
        for (std::int64_t i = 0; i < inner; ++i) {
          sum +=
              x[r * inner + i] * w[transpose == Transpose::kNo ? i * columns + j : j * inner + i];
        }
        expected.push_back(sum);
      }
    }
    MatmulBatch<double> args;
    args.batch = batch;
    args.rows = rows;
    args.inner = inner;
    args.columns = columns;
    args.x = x.data();
    args.x_stride = rows * inner;
    args.add = bias.data();
    args.add_is_bias = true;
    args.y = y.data();
    args.y_stride = rows * columns;
    Numbers scratch(static_cast<std::size_t>(matmul_scratch(inner, columns)));
    matmul(args, transpose, w.data(), scratch.data(), SerialExecutor());
    expect_near(expected, y, 1e-14);
  }
}

TEST(Linear, SumsOverRowsTheSameOnAnyNumberOfWorkers) {
  const std::int64_t rows = 20000, left = 13, right = 17;
  const auto x = random_numbers<float>(rows * left, 1);
  const auto g = random_numbers<float>(rows * right, 2);
  expect_same_bits([&](const Executor& executor) {
    std::vector<float> out(static_cast<std::size_t>(left * right + right));
    std::vector<float> scratch(
        static_cast<std::size_t>(transposed_matmul_scratch(rows, left, right, executor.workers())));
    transposed_matmul(x.data(), g.data(), rows, left, right, out.data(), scratch.data(), executor);
    scratch.resize(static_cast<std::size_t>(column_sums_scratch(rows, right)));
    column_sums(g.data(), rows, right, out.data() + left * right, scratch.data(), executor);
    return out;
  });
  const std::int64_t few = 7;
  Numbers wide_x(x.begin(), x.begin() + few * left), wide_g(g.begin(), g.begin() + few * right);
  Numbers out(static_cast<std::size_t>(left * right)), expected(out.size());
  for (std::int64_t r = 0; r < few; ++r) {
    for (std::int64_t i = 0; i < left; ++i) {
      for (std::int64_t j = 0; j < right; ++j) {
        expected[i * right + j] += wide_x[r * left + i] * wide_g[r * right + j];
      }
    }
  }
  Numbers scratch(static_cast<std::size_t>(transposed_matmul_scratch(few, left, right, 1)));
  transposed_matmul(wide_x.data(), wide_g.data(), few, left, right, out.data(), scratch.data(),
                    SerialExecutor());
  expect_near(expected, out, 1e-13);
}

TEST(EngineLayerNorm, HasTheValuesAndGradientsOfItsDefinition) {
  const std::int64_t rows = 3, width = 5;
  const Numbers x = random_numbers(rows * width, 1), scale = random_numbers(width, 2),
                shift = random_numbers(width, 3), grad = random_numbers(rows * width, 4);
  const auto definition = [&](const Numbers& x_in, const Numbers& scale_in,
                              const Numbers& shift_in) {
    Numbers y;
    for (std::int64_t r = 0; r < rows; ++r) {
      double mean = 0.0, variance = 0.0;
      for (std::int64_t j = 0; j < width; ++j) mean += x_in[r * width + j] / width;
      for (std::int64_t j = 0; j < width; ++j) {
        variance += std::pow(x_in[r * width + j] - mean, 2) / width;
      }
      for (std::int64_t j = 0; j < width; ++j) {
        y.push_back((x_in[r * width + j] - mean) / std::sqrt(variance + 1e-5) * scale_in[j] +
                    shift_in[j]);
      }
    }
    return y;
  };
  Numbers mean(rows), inverse(rows), y(x.size()), grad_x(x.size()), grad_scale(width),
      grad_shift(width);
  const LayerNorm<double> args{rows,         width,       1e-5,          x.data(),
                               scale.data(), mean.data(), inverse.data()};
  layer_norm(args, shift.data(), y.data(), SerialExecutor());
  expect_near(definition(x, scale, shift), y, 1e-12);
  Numbers scratch(static_cast<std::size_t>(layer_norm_scratch(rows, width)));
  layer_norm_adjoint(args, grad.data(), grad_x.data(), grad_scale.data(), grad_shift.data(),
                     scratch.data(), SerialExecutor());
  expect_near(differences([&](const Numbers& v) { return definition(v, scale, shift); }, x, grad),
              grad_x);
  expect_near(differences([&](const Numbers& v) { return definition(x, v, shift); }, scale, grad),
              grad_scale);
  expect_near(differences([&](const Numbers& v) { return definition(x, scale, v); }, shift, grad),
              grad_shift);
}

TEST(EngineActivation, HasItsDerivative) {
  const Numbers x = {-2.5, -1.0, -0.1, 0.2, 1.0, 3.0}, grad = random_numbers(6, 4);
  for (const Activation activation : {Activation::kGelu, Activation::kRelu, Activation::kTanh,
                                      Activation::kLeakyRelu, Activation::kIdentity}) {
    SCOPED_TRACE(to_string(activation));
    EXPECT_EQ(activation_from_name(to_string(activation)), activation);
    const auto f = [&](const Numbers& v) {
      Numbers y(v.size());
      activate(activation, v.data(), static_cast<std::int64_t>(v.size()), y.data(),
               SerialExecutor());
      return y;
    };
    Numbers grad_x(x.size());
    activate_adjoint(activation, x.data(), grad.data(), 6, grad_x.data(), SerialExecutor());
    expect_near(differences(f, x, grad), grad_x);
    Numbers y_also(x.size()), slope = x;
    activate_and_slope(activation, slope.data(), 6, y_also.data(), slope.data(), SerialExecutor());
    EXPECT_EQ(y_also, f(x));
    for (std::size_t i = 0; i < x.size(); ++i) EXPECT_EQ(slope[i] * grad[i], grad_x[i]);
    // float takes another way where there is a kernel.
    const std::vector<float> narrow(x.begin(), x.end());
    std::vector<float> y(narrow.size());
    activate(activation, narrow.data(), 6, y.data(), SerialExecutor());
    expect_near(f(x), Numbers(y.begin(), y.end()), 1e-6);
  }
  EXPECT_THROW(activation_from_name("sine"), std::invalid_argument);
}

TEST(EngineDropout, DependsOnTheSeedAlone) {
  const auto x = random_numbers<float>(100000, 1);
  expect_same_bits([&](const Executor& executor) {
    std::vector<float> y(x.size());
    dropout(x.data(), static_cast<std::int64_t>(x.size()), 7, 0.3, y.data(), executor);
    return y;
  });
}

TEST(EnginePool, HasTheValuesAndGradientsOfItsDefinition) {
  const std::vector<std::int64_t> graphs = {0, 2, 2, 5};  // the second one is empty
  const std::int64_t width = 2;
  const Numbers x = {1, 5, 3, 5, -1, 2, -4, 8, 2, 0};
  const auto pooled = [&](Pooling pooling, const Numbers& v) {
    Numbers y(static_cast<std::size_t>(3 * pooled_copies(pooling) * width), -1.0);
    pool(pooling, graphs, v.data(), width, y.data(), SerialExecutor());
    return y;
  };
  EXPECT_EQ(pooled(Pooling::kSum, x), (Numbers{4, 10, 0, 0, -3, 10}));
  EXPECT_EQ(pooled(Pooling::kMean, x), (Numbers{2, 5, 0, 0, -1, 10.0 / 3}));
  EXPECT_EQ(pooled(Pooling::kMax, x), (Numbers{3, 5, 0, 0, 2, 8}));
  EXPECT_EQ(pooled(Pooling::kSumMaxMean, x),
            (Numbers{4, 10, 3, 5, 2, 5, 0, 0, 0, 0, 0, 0, -3, 10, 2, 8, -1, 10.0 / 3}));
  Numbers distinct = x;
  distinct[3] = 4.0;  // differences need one maximum
  for (const Pooling pooling :
       {Pooling::kSum, Pooling::kMean, Pooling::kMax, Pooling::kSumMaxMean}) {
    SCOPED_TRACE(to_string(pooling));
    const Numbers y = pooled(pooling, distinct);
    const Numbers grad = random_numbers(static_cast<std::int64_t>(y.size()), 4);
    Numbers grad_x(x.size(), -1.0);
    pool_adjoint(pooling, graphs, distinct.data(), width, y.data(), grad.data(), grad_x.data(),
                 SerialExecutor());
    expect_near(differences([&](const Numbers& v) { return pooled(pooling, v); }, distinct, grad),
                grad_x);
  }
  // Two share the maximum 5, and so its gradient.
  const Numbers y = pooled(Pooling::kMax, x), grad = {1, 1, 1, 1, 1, -1};
  Numbers grad_x(x.size());
  pool_adjoint(Pooling::kMax, graphs, x.data(), width, y.data(), grad.data(), grad_x.data(),
               SerialExecutor());
  EXPECT_EQ(grad_x, (Numbers{0, 0.5, 1, 0.5, 0, 0, 0, -1, 1, 0}));
}

}  // namespace
}  // namespace mpssm::engine
