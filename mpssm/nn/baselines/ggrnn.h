// SPDX-License-Identifier: MIT
// Graph recurrent neural network without gates (Ruiz, Gama and Ribeiro, 2020): graph filters on
// state and input, and a nonlinearity at each time step.
#pragma once

#include <cstdint>
#include <vector>

#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include "mpssm/nn/baselines/layered.h"

namespace mpssm::nn {

/// For each layer, with U(t) = Norm(H(t)) and X(0) = 0,
///   X(t) = phi(sum_(j=0..hops) A^j X(t-1) W(j) + sum_(j=0..hops) A^j U(t) B(j) + b),
///   H(t) <- [H(t) +] Dropout(X(t)).
/// The rest as in LayeredImpl, of a forecast; the published network has one layer.
class GgrnnImpl : public LayeredImpl {
 public:
  GgrnnImpl(const LayeredOptions& options, std::int64_t hops);

 protected:
  torch::Tensor embed(torch::Tensor h, const graph::Gso& gso) override;

 private:
  std::int64_t hops_;
  std::vector<torch::nn::Linear> input_;  // [(hops + 1) C] -> [C]: B(0), B(1), ... and b
  std::vector<torch::nn::Linear> state_;  // W(0), W(1), ..., without bias
};
TORCH_MODULE(Ggrnn);

}  // namespace mpssm::nn
