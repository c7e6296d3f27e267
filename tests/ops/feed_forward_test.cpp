// SPDX-License-Identifier: MIT
// The fused operators give what the single ones give one by one, gradients and random numbers too.
#include "mpssm/ops/feed_forward.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <torch/torch.h>

#include "mpssm/ops/activation.h"
#include "mpssm/ops/dropout.h"
#include "mpssm/ops/generator.h"
#include "mpssm/ops/layer_norm.h"
#include "mpssm/ops/linear.h"

#include "tests/support/tensors.h"

namespace mpssm::ops {
namespace {

using engine::Activation;
using mpssm::testing::close;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

struct FusedArguments {
  torch::Tensor x, scale, shift, w1, b1, w2, b2, residual;

  explicit FusedArguments(torch::Dtype type) {
    torch::manual_seed(7);
    const auto make = [&](at::IntArrayRef sizes) {
      return torch::randn(sizes, type).requires_grad_(true);
    };
    x = make({3, 70, 12});
    scale = make({12});
    shift = make({12});
    w1 = make({20, 12});
    b1 = make({20});
    w2 = make({9, 20});
    b2 = make({9});
    residual = make({3, 70, 9});
  }
  std::vector<torch::Tensor> all() const { return {x, scale, shift, w1, b1, w2, b2, residual}; }
};

/// Value and gradients of everything.
std::vector<torch::Tensor> with_gradients(const torch::Tensor& y,
                                          const std::vector<torch::Tensor>& arguments) {
  torch::manual_seed(8);
  std::vector<torch::Tensor> result = torch::autograd::grad({y}, arguments, {torch::randn_like(y)});
  result.push_back(y);
  return result;
}

void expect_close(const std::vector<torch::Tensor>& a, const std::vector<torch::Tensor>& b,
                  double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(close(a[i], b[i], tolerance)) << i;
}

TEST(FeedForwardOp, IsWhatItsPartsAreOneByOne) {
  for (const torch::Dtype type : {torch::kFloat, torch::kDouble}) {
    const FusedArguments a(type);
    for (const Activation activation : {Activation::kGelu, Activation::kRelu, Activation::kTanh,
                                        Activation::kLeakyRelu, Activation::kIdentity}) {
      for (const double probability : {0.0, 0.3}) {
        torch::Tensor fused, single, next_of_fused, next_of_single;
        {
          const GeneratorScope scope(make_generator(3));
          fused = feed_forward(a.x, {{a.scale, a.shift}, a.w1, a.b1, a.w2, a.b2},
                               {.activation = activation,
                                .drop_hidden = probability,
                                .drop_out = probability / 2,
                                .residual = a.residual});
          next_of_fused = ops::dropout(torch::ones({50}), 0.5);
        }
        {
          const GeneratorScope scope(make_generator(3));
          const auto hidden =
              activate(activation, ops::linear(ops::layer_norm(a.x, a.scale, a.shift), a.w1, a.b1));
          single =
              a.residual + ops::dropout(ops::linear(ops::dropout(hidden, probability), a.w2, a.b2),
                                        probability / 2);
          next_of_single = ops::dropout(torch::ones({50}), 0.5);
        }
        EXPECT_TRUE(next_of_fused.equal(next_of_single));
        expect_close(with_gradients(fused, a.all()), with_gradients(single, a.all()),
                     type == torch::kFloat ? 2e-5 : 1e-12);
      }
    }
  }
}

TEST(FeedForwardOp, NeedsNeitherNormNorResidual) {
  const FusedArguments a(torch::kDouble);
  const std::vector<torch::Tensor> used = {a.x, a.w1, a.b1, a.w2, a.b2};
  const auto fused = feed_forward(a.x, {{}, a.w1, a.b1, a.w2, a.b2});
  const auto single =
      ops::linear(activate(Activation::kGelu, ops::linear(a.x, a.w1, a.b1)), a.w2, a.b2);
  expect_close(with_gradients(fused, used), with_gradients(single, used), 1e-12);
}

TEST(FeedForwardOp, RefusesShapesThatDoNotFit) {
  const FusedArguments a(torch::kFloat);
  EXPECT_THAT(
      [&] {
        feed_forward(a.x, {{a.scale, {}}, a.w1, a.b1, a.w2, a.b2});
      },
      ThrowsMessage<c10::Error>(HasSubstr("expected scale and shift of shape [C=12]")));
  EXPECT_THAT(
      [&] {
        feed_forward(a.x, {{}, a.w2, a.b1, a.w1, a.b2});
      },
      ThrowsMessage<c10::Error>(HasSubstr("expected w1 of shape [hidden, in]")));
  EXPECT_THAT(
      [&] {
        feed_forward(a.x, {{}, a.w1, a.b1, a.w2, a.b2}, {.residual = a.x});
      },
      ThrowsMessage<c10::Error>(HasSubstr("expected a residual of shape")));
  EXPECT_THAT([&] { norm_linear(a.x, {}, a.w1); },
              ThrowsMessage<c10::Error>(HasSubstr("norm_linear: expected x of shape")));
}

TEST(NormLinearOp, IsANormAndAProduct) {
  for (const torch::Dtype type : {torch::kFloat, torch::kDouble}) {
    const FusedArguments a(type);
    const auto w = torch::randn({12, 5}, type).requires_grad_(true);
    const double tolerance = type == torch::kFloat ? 2e-5 : 1e-12;
    const std::vector<torch::Tensor> all = {a.x, a.scale, a.shift, w};
    expect_close(with_gradients(norm_linear(a.x, {a.scale, a.shift}, w), all),
                 with_gradients(ops::matmul(ops::layer_norm(a.x, a.scale, a.shift), w), all),
                 tolerance);
    const std::vector<torch::Tensor> bare = {a.x, w};
    expect_close(with_gradients(norm_linear(a.x, {}, w), bare),
                 with_gradients(ops::matmul(a.x, w), bare), tolerance);
  }
}

}  // namespace
}  // namespace mpssm::ops
