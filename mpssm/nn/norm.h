// SPDX-License-Identifier: MIT
// Normalisation over the channels of node features, chosen by option.
#pragma once

#include <cstdint>
#include <string_view>

#include <torch/nn/module.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/pimpl.h>

namespace mpssm::nn {

enum class NormKind { kNone, kLayer, kBatch };

/// LayerNorm over the last axis, BatchNorm over all others, or nothing. x: [..., C].
class NormImpl : public torch::nn::Module {
 public:
  NormImpl(NormKind kind, std::int64_t channels);
  torch::Tensor forward(const torch::Tensor& x);

 private:
  torch::Tensor scale_;  // LayerNorm: [C]
  torch::Tensor shift_;
  torch::nn::BatchNorm1d batch_{nullptr};
};
TORCH_MODULE(Norm);

std::string_view to_string(NormKind kind);
/// Throws std::invalid_argument listing the names: none, layer, batch.
NormKind norm_kind_from_name(std::string_view name);

}  // namespace mpssm::nn
