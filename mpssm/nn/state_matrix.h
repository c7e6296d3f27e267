// SPDX-License-Identifier: MIT
// The learned matrix W of the recurrence: dense, or diagonal in one of two parametrisations.
#pragma once

#include <cstdint>
#include <vector>

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include "mpssm/nn/kinds.h"

namespace mpssm::nn {

enum class DenseInit {
  kOrthogonal,  ///< scale * Q, so that powers keep their size
  kUniform,     ///< U(-1/sqrt(C), 1/sqrt(C)), torch's Linear: spectral radius about 0.6
};

struct StateMatrixOptions {
  std::int64_t channels = 32;  ///< C, real numbers per node; even unless dense
  StateKind kind = StateKind::kStable;
  DenseInit dense_init = DenseInit::kOrthogonal;
  double dense_scale = 1.0;
  double min_modulus = 0.7;  ///< |sigma| starts uniform in the disc ring [min, max]
  double max_modulus = 0.999;
  /// Of operators per group of channels: how many each has. Empty: there are none. A dense W is
  /// then one for each group; a diagonal one is what it is.
  std::vector<std::int64_t> group_channels = {};
};

/// Holds the parameters of W and gives it in the form that ops::recurrence takes.
class StateMatrixImpl : public torch::nn::Module {
 public:
  explicit StateMatrixImpl(const StateMatrixOptions& options);

  /// Dense: real [C, C], of groups one after the other, flat. Diagonal: complex [C/2].
  /// Differentiable in the parameters.
  torch::Tensor forward() const;

  /// W of each group of channels, in the form that one operator takes; one if there are no groups.
  std::vector<torch::Tensor> of_groups() const;

  void reset_parameters();
  const StateMatrixOptions& options() const { return options_; }

  torch::Tensor weight;  ///< kDense: [C, C], unless there are groups
  /// kDense, by groups: [C_g, C_g] each, "weight_0", "weight_1", ...
  std::vector<torch::Tensor> group_weights;
  torch::Tensor sigma;  ///< kDiagonal: [C/2, 2], real and imaginary part
  torch::Tensor nu;     ///< kStable: [C/2]
  torch::Tensor theta;  ///< kStable: [C/2]

 private:
  StateMatrixOptions options_;
};
TORCH_MODULE(StateMatrix);

}  // namespace mpssm::nn
