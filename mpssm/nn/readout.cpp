// SPDX-License-Identifier: MIT
#include "mpssm/nn/readout.h"

#include <algorithm>
#include <fmt/core.h>
#include <string>

#include <torch/types.h>

#include "mpssm/ops/dropout.h"
#include "mpssm/ops/linear.h"
#include "mpssm/ops/pool.h"

namespace mpssm::nn {

ReadoutHead::ReadoutHead(torch::nn::Module& owner, const ReadoutOptions& options)
    : options_(options) {
  TORCH_CHECK_VALUE(options.layers >= 1, "readout: expected readout_layers >= 1, got ",
                    options.layers);
  TORCH_CHECK_VALUE(options.dropout >= 0.0 && options.dropout < 1.0,
                    "readout: expected dropout in [0, 1), got ", options.dropout);
  const bool triple = options.pools && options.pooling == engine::Pooling::kSumMaxMean;
  std::int64_t width = triple ? 3 * options.in_channels : options.in_channels;
  for (std::int64_t i = 0; i < options.layers; ++i) {
    const bool last = i + 1 == options.layers;
    const std::int64_t hidden = options.shape == ReadoutShape::kConstant
                                    ? options.in_channels
                                    : std::max<std::int64_t>(width / 2, 1);
    const std::int64_t next = last ? options.out_channels : hidden;
    layers_.push_back(
        owner.register_module(fmt::format("readout_{}", i), torch::nn::Linear(width, next)));
    width = next;
  }
}

void ReadoutHead::start_at_zero() {
  const torch::NoGradGuard no_grad;
  layers_.back()->weight.zero_();
  layers_.back()->bias.zero_();
}

torch::Tensor ReadoutHead::forward(torch::Tensor h, const graph::Operators& gso,
                                   engine::RowPlace place) const {
  if (options_.pools) h = ops::pool(gso, h, options_.pooling);
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    if (i > 0) h = activate(options_.activation, h);
    if (layers_[i]->is_training()) h = ops::dropout(h, options_.dropout);
    h = ops::linear(h, layers_[i]->weight, layers_[i]->bias, engine::Precision::kFloat32, place);
  }
  return h;
}

}  // namespace mpssm::nn
