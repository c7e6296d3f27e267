// SPDX-License-Identifier: MIT
// Anti-symmetric deep graph network (Gravina, Bacciu and Gallicchio, 2023): small steps of an
// ordinary differential equation that neither forgets nor explodes, because the eigenvalues of
// W - W' are imaginary.
#pragma once

#include <vector>

#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include "mpssm/nn/baselines/layered.h"

namespace mpssm::nn {

struct AdgnOptions {
  LayeredOptions layers = {};  ///< `residual` says nothing: a step always adds
  std::int64_t steps = 1;      ///< of each layer, which share its weights
  double step_size = 0.1;      ///< epsilon
  double damping = 0.1;        ///< gamma
};

/// For each layer H <- Norm(H), then `steps` times
///   H <- H + epsilon phi(H (W - W' - gamma I) + A H V + b),
/// then dropout. The rest as in LayeredImpl.
class AdgnImpl : public LayeredImpl {
 public:
  explicit AdgnImpl(const AdgnOptions& options);

 protected:
  torch::Tensor embed(torch::Tensor h, const graph::Gso& gso) override;

 private:
  AdgnOptions options_;
  std::vector<torch::Tensor> free_;            // W: [C, C]
  std::vector<torch::nn::Linear> neighbours_;  // V and b
};
TORCH_MODULE(Adgn);

}  // namespace mpssm::nn
