// SPDX-License-Identifier: MIT
#include "mpssm/train/weight_average.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <torch/torch.h>

#include "mpssm/base/error.h"

namespace mpssm::train {
namespace {

TEST(WeightAverage, IsTheSumThatItIsDefinedAs) {
  torch::manual_seed(1);
  torch::nn::Linear net(3, 2);
  constexpr double kDecay = 0.5;
  WeightAverage average(*net, kDecay);
  torch::Tensor expected = net->weight.detach().clone();
  for (int step = 1; step <= 12; ++step) {
    const torch::NoGradGuard no_grad;
    net->weight.add_(torch::randn({2, 3}));
    average.follow(step);
    const double kept = std::min(kDecay, (1.0 + step) / (10.0 + step));
    expected = kept * expected + (1.0 - kept) * net->weight;
    EXPECT_TRUE(torch::allclose(average.mean().at("weight"), expected, 1e-5, 1e-6)) << step;
  }
  EXPECT_FALSE(torch::allclose(net->weight, expected));
}

TEST(WeightAverage, StandsInForTheWeightsInAScope) {
  torch::nn::Sequential net(torch::nn::Linear(3, 2), torch::nn::BatchNorm1d(2));
  WeightAverage average(*net, 0.9);
  const Weights start = copy_weights(*net);
  net->forward(torch::randn({8, 3}));  // moves the statistics of the norm
  {
    const torch::NoGradGuard no_grad;
    for (torch::Tensor& parameter : net->parameters()) parameter.add_(1.0);
  }
  average.follow(1);
  const Weights stepped = copy_weights(*net);
  {
    const WeightAverage::Scope averaged(average);
    for (const auto& [name, weight] : copy_weights(*net)) {
      EXPECT_TRUE(torch::equal(weight, average.mean().at(name))) << name;
    }
  }
  for (const auto& [name, weight] : copy_weights(*net)) {
    EXPECT_TRUE(torch::equal(weight, stepped.at(name))) << name;
  }
  EXPECT_FALSE(torch::equal(average.mean().at("0.weight"), stepped.at("0.weight")));
  EXPECT_TRUE(torch::equal(average.mean().at("1.running_mean"), stepped.at("1.running_mean")));
  EXPECT_THROW(average.set_mean({}, "state"), base::Error);
}

TEST(WeightAverage, OffIsNothing) {
  torch::nn::Linear net(3, 2);
  WeightAverage average(*net, 0.0);
  average.follow(1);
  EXPECT_TRUE(average.mean().empty());
  const torch::Tensor before = net->weight.detach().clone();
  const WeightAverage::Scope averaged(average);
  EXPECT_TRUE(torch::equal(net->weight, before));
}

}  // namespace
}  // namespace mpssm::train
