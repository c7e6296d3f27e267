// SPDX-License-Identifier: MIT
// The learned factors of an operator of low rank, A = P Q', between nodes that are always the same.
#pragma once

#include <cstdint>

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

namespace mpssm::nn {

struct FactorsOptions {
  std::int64_t num_nodes = 0;
  std::int64_t rank = 1;
};

/// P and Q from a learned vector of each node as one that hears and as one that is heard. Column k
/// of a factor is column k of the vectors E, divided by sqrt(sum_l |<E_k, E_l>|): a factor then has
/// no singular value above 1, and orthogonal columns have length 1. So ||A|| <= 1, whatever is
/// learned, and A is linear and of low rank, which a softmax over the nodes would not be.
class FactorsImpl : public torch::nn::Module {
 public:
  explicit FactorsImpl(const FactorsOptions& options);

  /// P and Q, [2, N, rank], as gso_values of a recurrence. Differentiable in the vectors.
  torch::Tensor forward() const;

  const FactorsOptions& options() const { return options_; }

  torch::Tensor hearing;  ///< [N, rank], for P
  torch::Tensor heard;    ///< [N, rank], for Q

 private:
  FactorsOptions options_;
};
TORCH_MODULE(Factors);

}  // namespace mpssm::nn
