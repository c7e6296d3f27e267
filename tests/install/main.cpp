// SPDX-License-Identifier: MIT
// What a user of the installed package writes: build a model, run it, fit a small target.
#include <cstdio>
#include <mpssm/graph/generators.h>
#include <mpssm/graph/gso.h>
#include <mpssm/nn/model.h>

#include <ATen/ATen.h>
#include <torch/optim/adam.h>

int main() {
  at::manual_seed(1);
  const auto graph = mpssm::graph::make_ring(64);
  const auto gso = mpssm::graph::make_gso(graph);
  mpssm::nn::Model model(mpssm::nn::ModelOptions{
      .in_channels = 8, .hidden_channels = 32, .out_channels = 2, .num_blocks = 4});

  const auto x = at::randn({64, 8});
  const auto target = at::randn({64, 2});
  torch::optim::Adam adam(model->parameters(), 1e-2);

  double first = 0.0;
  double last = 0.0;
  for (int step = 0; step < 30; ++step) {
    adam.zero_grad();
    const auto y = model->forward(x, gso);
    const auto loss = at::mse_loss(y, target);
    loss.backward();
    adam.step();
    last = loss.item<double>();
    if (step == 0) {
      first = last;
      std::printf("output: %d x %d\n", static_cast<int>(y.size(0)), static_cast<int>(y.size(1)));
    }
  }
  std::printf("loss: %.4f -> %.4f\n", first, last);
  return last < 0.9 * first ? 0 : 1;
}
