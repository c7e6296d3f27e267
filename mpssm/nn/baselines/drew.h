// SPDX-License-Identifier: MIT
// DRew-GCN (Gutteridge, Dong, Bronstein and Di Giovanni, 2023): layer by layer, nodes one hop
// farther away are neighbours too, and what comes from far away comes late.
#pragma once

#include <cstdint>
#include <vector>

#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include "mpssm/nn/baselines/layered.h"
#include "mpssm/nn/baselines/operator_memo.h"

namespace mpssm::nn {

/// With U(s) = Norm(H(s)) and A(i) the operator of pairs at exactly i hops
/// (graph::exact_distance_operators), for s = 0, ..., layers - 1:
///   H(s+1) = [H(s) +] Dropout(phi(sum_(i=1..s+1) A(i) U(s - max(0, i - delay)) W(s,i) + b(s))).
/// The rest as in LayeredImpl.
class DrewImpl : public LayeredImpl {
 public:
  DrewImpl(const LayeredOptions& options, std::int64_t delay);

 protected:
  torch::Tensor embed(torch::Tensor h, const graph::Gso& gso) override;

 private:
  std::int64_t delay_;
  std::vector<torch::nn::Linear>
      layers_;  // [(s+1) hidden] -> [hidden]: W(s,1), ... below each other
  OperatorMemo<std::vector<graph::Gso>> at_distance_;
};
TORCH_MODULE(Drew);

}  // namespace mpssm::nn
