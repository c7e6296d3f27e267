// SPDX-License-Identifier: MIT
#include "mpssm/nn/baselines/sage.h"

#include <fmt/core.h>

#include <torch/types.h>

#include "mpssm/graph/pattern_operators.h"
#include "mpssm/ops/linear.h"
#include "mpssm/ops/spmm.h"

namespace mpssm::nn {

SageImpl::SageImpl(const LayeredOptions& options) : LayeredImpl("Sage", options) {
  const std::int64_t hidden = options.hidden_channels;
  for (std::int64_t i = 0; i < options.num_layers; ++i) {
    begin_layer();
    layers_.push_back(
        register_module(fmt::format("layer_{}", i), torch::nn::Linear(2 * hidden, hidden)));
  }
  end_layers(options.norm);
}

torch::Tensor SageImpl::layer(std::int64_t index, const torch::Tensor& h, const graph::Gso& gso) {
  const graph::Gso& mean = mean_.get(gso, graph::neighbour_mean);
  return ops::linear(torch::cat({h, ops::spmm(mean, h)}, -1), layers_[index]->weight,
                     layers_[index]->bias);
}

}  // namespace mpssm::nn
