// SPDX-License-Identifier: MIT
// Normalisation over the channels of node features, chosen by option.
#pragma once

#include <cstdint>

#include <torch/nn/module.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/pimpl.h>

#include "mpssm/nn/kinds.h"
#include "mpssm/ops/feed_forward.h"

namespace mpssm::nn {

/// LayerNorm over the last axis, BatchNorm over all others, or nothing. x: [..., C].
class NormImpl : public torch::nn::Module {
 public:
  NormImpl(NormKind kind, std::int64_t channels);
  /// `place` is for layer norm.
  torch::Tensor forward(const torch::Tensor& x, engine::RowPlace place = {});

  /// Of a LayerNorm, for operators that have one inside; undefined otherwise.
  ops::NormWeights layer_weights() const { return {scale_, shift_}; }
  bool is_layer() const { return scale_.defined(); }

 private:
  torch::Tensor scale_;  // LayerNorm: [C]
  torch::Tensor shift_;
  torch::nn::BatchNorm1d batch_{nullptr};
};
TORCH_MODULE(Norm);

}  // namespace mpssm::nn
