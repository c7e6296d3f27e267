// SPDX-License-Identifier: MIT
// The learned matrix W of the recurrence: dense, or diagonal in one of two parametrisations.
#pragma once

#include <cstdint>

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
};

/// Holds the parameters of W and gives it in the form that ops::recurrence takes.
class StateMatrixImpl : public torch::nn::Module {
 public:
  explicit StateMatrixImpl(const StateMatrixOptions& options);

  /// Dense: real [C, C]. Diagonal: complex [C/2]. Differentiable in the parameters.
  torch::Tensor forward() const;

  void reset_parameters();
  const StateMatrixOptions& options() const { return options_; }

  torch::Tensor weight;  ///< kDense: [C, C]
  torch::Tensor sigma;   ///< kDiagonal: [C/2, 2], real and imaginary part
  torch::Tensor nu;      ///< kStable: [C/2]
  torch::Tensor theta;   ///< kStable: [C/2]

 private:
  StateMatrixOptions options_;
};
TORCH_MODULE(StateMatrix);

}  // namespace mpssm::nn
