// SPDX-License-Identifier: MIT
#include "mpssm/nn/baselines/adgn.h"

#include <cmath>
#include <fmt/core.h>

#include <torch/nn/init.h>
#include <torch/types.h>

#include "mpssm/ops/dropout.h"
#include "mpssm/ops/linear.h"
#include "mpssm/ops/spmm.h"

namespace mpssm::nn {

AdgnImpl::AdgnImpl(const AdgnOptions& options)
    : LayeredImpl("Adgn", options.layers), options_(options) {
  TORCH_CHECK_VALUE(options.steps >= 1, "Adgn: expected steps >= 1, got ", options.steps);
  const std::int64_t hidden = options.layers.hidden_channels;
  const double bound = 1.0 / std::sqrt(static_cast<double>(hidden));
  for (std::int64_t i = 0; i < options.layers.num_layers; ++i) {
    begin_layer();
    free_.push_back(register_parameter(fmt::format("free_{}", i), torch::empty({hidden, hidden})));
    torch::nn::init::uniform_(free_.back(), -bound, bound);
    neighbours_.push_back(
        register_module(fmt::format("layer_{}", i), torch::nn::Linear(hidden, hidden)));
  }
  end_layers(options.layers.norm);
}

torch::Tensor AdgnImpl::embed(torch::Tensor h, const graph::Gso& gso) {
  for (std::size_t i = 0; i < free_.size(); ++i) {
    const torch::Tensor antisymmetric =
        free_[i] - free_[i].t() -
        options_.damping * torch::eye(free_[i].size(0), free_[i].options());
    h = norm(static_cast<std::int64_t>(i), h);
    for (std::int64_t step = 0; step < options_.steps; ++step) {
      const torch::Tensor moved =
          ops::linear(ops::spmm(gso, h), neighbours_[i]->weight, neighbours_[i]->bias);
      const torch::Tensor pushed = ops::matmul(h, antisymmetric) + moved;
      h = h + options_.step_size * activate(options_.layers.activation, pushed);
    }
    if (is_training()) h = ops::dropout(h, options_.layers.dropout);
  }
  return h;
}

}  // namespace mpssm::nn
