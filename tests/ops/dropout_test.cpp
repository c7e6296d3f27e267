// SPDX-License-Identifier: MIT
#include "mpssm/ops/dropout.h"

#include <gtest/gtest.h>

#include <torch/torch.h>

#include "mpssm/ops/runtime.h"

namespace mpssm::ops {
namespace {

TEST(Dropout, KeepsTheMeanAndDropsTheStatedShare) {
  torch::manual_seed(3);
  const auto y = dropout(torch::ones({1000, 100}), 0.4);
  EXPECT_NEAR((y == 0).to(torch::kDouble).mean().item<double>(), 0.4, 0.01);
  EXPECT_NEAR(y.mean().item<double>(), 1.0, 0.02);
}

TEST(Dropout, GradientHasTheSameMask) {
  for (const auto type : {torch::kFloat, torch::kDouble}) {
    auto x = torch::ones({37, 11}, type).requires_grad_();
    const auto y = dropout(x, 0.3);
    y.sum().backward();
    EXPECT_TRUE(torch::equal(x.grad(), y.detach()));
  }
}

TEST(Dropout, FollowsTheGeneratorAndNotTheThreads) {
  const auto x = torch::randn({512, 333});
  const auto run = [&](std::int64_t threads) {
    set_num_threads(threads);
    torch::manual_seed(5);
    const auto first = dropout(x, 0.5);
    return torch::stack({first, dropout(x, 0.5)});
  };
  const auto one = run(1);
  EXPECT_TRUE(torch::equal(one, run(2)));
  EXPECT_FALSE(torch::equal(one[0], one[1]));
  set_num_threads(0);
}

TEST(Dropout, ProbabilityZeroIsTheInputAndOneIsRefused) {
  const auto x = torch::randn({4});
  EXPECT_TRUE(dropout(x, 0.0).is_same(x));
  EXPECT_THROW(dropout(x, 1.0), c10::Error);
}

}  // namespace
}  // namespace mpssm::ops
