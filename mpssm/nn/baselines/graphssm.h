// SPDX-License-Identifier: MIT
// GraphSSM (Li and others, 2024) with S4: a graph convolution at each time step, neighbouring steps
// mixed, then a state-space model over time, node by node. S4 in its diagonal form (Gu and others,
// 2022).
#pragma once

#include <cstdint>
#include <vector>

#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include "mpssm/nn/baselines/layered.h"

namespace mpssm::nn {

/// For each layer, with U(t) = Norm(H(t)),
///   G(t) = phi(A U(t) W + b),
///   M(t) = (1 - m) G(t) + m G(t-1),  m = sigmoid(.) of each channel, G(0) = 0,
///   S(t) = sum_(s >= 0) K(s) M(t-s),  H(t) <- [H(t) +] Dropout(phi(S(t)) O + o),
/// where channel c of K is the response of z' = a z + v, S = 2 Re(sum_n g_n z_n) + d v with
/// `states` complex a_n, held over steps of length D:
///   K(s) = 2 Re(sum_n g_n (exp(D a_n) - 1) / a_n exp(s D a_n)) + [s = 0] d.
/// a_n = -exp(.) + i (.) starts at -1/2 + i pi n. The rest as in LayeredImpl, of a forecast.
class GraphSsmImpl : public LayeredImpl {
 public:
  GraphSsmImpl(const LayeredOptions& options, std::int64_t states);

  /// K of a layer: [steps, C].
  torch::Tensor kernel(std::int64_t layer, std::int64_t steps) const;

 protected:
  torch::Tensor embed(torch::Tensor h, const graph::Gso& gso) override;

 private:
  struct Layer {
    torch::nn::Linear graph{nullptr};  // W and b
    torch::Tensor mix;                 // [C]
    torch::Tensor log_step;            // [C] log D
    torch::Tensor log_decay;           // [C, states]
    torch::Tensor frequency;           // [C, states]
    torch::Tensor gain;                // [C, states, 2] g
    torch::Tensor direct;              // [C] d
    torch::nn::Linear out{nullptr};    // O and o
  };
  std::vector<Layer> layers_;
};
TORCH_MODULE(GraphSsm);

}  // namespace mpssm::nn
