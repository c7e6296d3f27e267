// SPDX-License-Identifier: MIT
#include "mpssm/train/adam.h"

#include <gtest/gtest.h>

#include <torch/torch.h>

#include "tests/support/tensors.h"

namespace mpssm::train {
namespace {

torch::nn::Sequential make_net() {
  torch::manual_seed(7);
  return torch::nn::Sequential(torch::nn::Linear(5, 8), torch::nn::Tanh(), torch::nn::Linear(8, 3));
}

template <typename Step>
void train_steps(torch::nn::Sequential& net, const Step& step) {
  torch::manual_seed(8);
  for (int i = 0; i < 20; ++i) {
    const auto x = torch::randn({16, 5});
    for (auto& parameter : net->parameters()) parameter.mutable_grad().reset();
    net->forward(x).square().mean().backward();
    step();
  }
}

TEST(Adam, TakesTheStepsOfTorch) {
  auto ours = make_net();
  auto theirs = make_net();
  Adam adam(*ours, {});
  torch::optim::Adam reference(theirs->parameters(), torch::optim::AdamOptions(0.01));
  train_steps(ours, [&] { adam.step(0.01); });
  train_steps(theirs, [&] { reference.step(); });
  for (std::size_t i = 0; i < ours->parameters().size(); ++i) {
    EXPECT_TRUE(mpssm::testing::close(ours->parameters()[i], theirs->parameters()[i], 1e-5));
  }
}

TEST(Adam, DecaysMatricesAsTorchDoesAndVectorsNot) {
  for (const bool decoupled : {true, false}) {
    auto ours = make_net();
    auto theirs = make_net();
    Adam adam(*ours, {.weight_decay = 0.1, .decoupled = decoupled});
    std::vector<torch::Tensor> matrices;
    std::vector<torch::Tensor> vectors;
    for (const auto& parameter : theirs->parameters()) {
      (parameter.dim() > 1 ? matrices : vectors).push_back(parameter);
    }
    const auto run_reference = [&](auto& decaying) {
      torch::optim::Adam plain(vectors, torch::optim::AdamOptions(0.01));
      train_steps(theirs, [&] {
        decaying.step();
        plain.step();
      });
    };
    train_steps(ours, [&] { adam.step(0.01); });
    if (decoupled) {
      torch::optim::AdamW reference(matrices, torch::optim::AdamWOptions(0.01).weight_decay(0.1));
      run_reference(reference);
    } else {
      torch::optim::Adam reference(matrices, torch::optim::AdamOptions(0.01).weight_decay(0.1));
      run_reference(reference);
    }
    for (std::size_t i = 0; i < ours->parameters().size(); ++i) {
      EXPECT_TRUE(mpssm::testing::close(ours->parameters()[i], theirs->parameters()[i], 1e-5));
    }
  }
}

TEST(Adam, ClipsTheGradientOfAllParametersTogether) {
  auto net = make_net();
  Adam adam(*net, {});
  net->forward(torch::ones({4, 5})).sum().backward();
  double squares = 0.0;
  for (const auto& parameter : net->parameters()) {
    squares += parameter.grad().square().sum().item<double>();
  }
  const double norm = adam.clip_gradients(0.5);
  EXPECT_NEAR(norm, std::sqrt(squares), 1e-4 * norm);
  EXPECT_GT(norm, 0.5);
  EXPECT_NEAR(adam.clip_gradients(0.0), 0.5, 1e-4);
}

}  // namespace
}  // namespace mpssm::train
