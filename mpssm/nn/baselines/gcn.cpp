// SPDX-License-Identifier: MIT
#include "mpssm/nn/baselines/gcn.h"

#include <fmt/core.h>

#include "mpssm/ops/linear.h"
#include "mpssm/ops/spmm.h"

namespace mpssm::nn {

GcnImpl::GcnImpl(const LayeredOptions& options) : LayeredImpl("Gcn", options) {
  const std::int64_t hidden = options.hidden_channels;
  for (std::int64_t i = 0; i < options.num_layers; ++i) {
    begin_layer();
    layers_.push_back(
        register_module(fmt::format("layer_{}", i), torch::nn::Linear(hidden, hidden)));
  }
  end_layers(options.norm);
}

torch::Tensor GcnImpl::layer(std::int64_t index, const torch::Tensor& h, const graph::Gso& gso) {
  return ops::linear(ops::spmm(gso, h), layers_[index]->weight, layers_[index]->bias);
}

}  // namespace mpssm::nn
