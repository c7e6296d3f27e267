// SPDX-License-Identifier: MIT
// Numeric gradients: one line per check. Everything in double.
#pragma once

#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include <torch/torch.h>

namespace mpssm::testing {

using TensorFunction = std::function<torch::Tensor(const std::vector<torch::Tensor>&)>;

/// Compares autograd's gradient of <weights, f(inputs)>, with fixed random weights, with central
/// differences at every number of every input that requires a gradient. Central differences with
/// step h err by h^2 and eps/h: 1e-5 makes both about 1e-10 times the size of the third derivative,
/// hence the tolerance.
inline void expect_gradients(const TensorFunction& f, const std::vector<torch::Tensor>& inputs,
                             double tolerance = 1e-6) {
  std::vector<torch::Tensor> leaves;
  for (const auto& input : inputs) {
    ASSERT_EQ(input.scalar_type(), torch::kDouble) << "gradients are checked in double";
    leaves.push_back(input.detach().clone().contiguous().requires_grad_());
  }
  const torch::Tensor out = f(leaves);
  torch::manual_seed(7);
  const torch::Tensor weights = torch::randn_like(out);
  const auto gradients = torch::autograd::grad({(out * weights).sum()}, leaves);

  const torch::NoGradGuard no_grad;
  const double step = 1e-5;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    torch::Tensor moved = leaves[i].detach().clone();
    std::vector<torch::Tensor> arguments = leaves;
    for (auto& argument : arguments) argument = argument.detach();
    arguments[i] = moved;
    torch::Tensor numeric = torch::zeros_like(moved);
    auto* at = moved.data_ptr<double>();
    for (std::int64_t j = 0; j < moved.numel(); ++j) {
      const double value = at[j];
      at[j] = value + step;
      const double above = (f(arguments) * weights).sum().item<double>();
      at[j] = value - step;
      const double below = (f(arguments) * weights).sum().item<double>();
      at[j] = value;
      numeric.data_ptr<double>()[j] = (above - below) / (2 * step);
    }
    if (numeric.numel() == 0) continue;
    const double scale = std::max(1.0, numeric.abs().max().item<double>());
    EXPECT_LE((numeric - gradients[i]).abs().max().item<double>() / scale, tolerance)
        << "gradient of input " << i << "\nautograd:\n"
        << gradients[i] << "\nnumeric:\n"
        << numeric;
  }
}

}  // namespace mpssm::testing
