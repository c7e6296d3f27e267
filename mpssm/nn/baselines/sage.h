// SPDX-License-Identifier: MIT
// GraphSAGE with the mean of the neighbours (Hamilton, Ying and Leskovec, 2017), without sampling.
#pragma once

#include <vector>

#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include "mpssm/nn/baselines/layered.h"
#include "mpssm/nn/baselines/operator_memo.h"

namespace mpssm::nn {

/// h_i <- [h_i +] Dropout(phi(u_i W1 + mean_(j in N(i)) u_j W2 + b)), u = Norm(h), for each layer;
/// N(i) are the nodes j != i where A has an entry (i, j), whatever its value. The rest as in
/// LayeredImpl.
class SageImpl : public LayeredImpl {
 public:
  explicit SageImpl(const LayeredOptions& options);

 protected:
  torch::Tensor layer(std::int64_t index, const torch::Tensor& h, const graph::Gso& gso) override;

 private:
  std::vector<torch::nn::Linear> layers_;  // [2 hidden] -> [hidden]: W1 above W2
  OperatorMemo<graph::Gso> mean_;
};
TORCH_MODULE(Sage);

}  // namespace mpssm::nn
