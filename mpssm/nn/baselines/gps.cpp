// SPDX-License-Identifier: MIT
#include "mpssm/nn/baselines/gps.h"

#include <fmt/core.h>
#include <utility>

#include <torch/types.h>

#include "mpssm/ops/dropout.h"
#include "mpssm/ops/feed_forward.h"

namespace mpssm::nn {

GpsImpl::GpsImpl(const LayeredOptions& options, std::int64_t heads) : LayeredImpl("Gps", options) {
  const std::int64_t hidden = options.hidden_channels;
  for (std::int64_t i = 0; i < options.num_layers; ++i) {
    const auto add = [&](const char* name, auto module) {
      return register_module(fmt::format("{}_{}", name, i), std::move(module));
    };
    layers_.push_back({.local = add("local", GraphAttention(hidden, heads)),
                       .global = add("global", Performer(hidden, heads)),
                       .local_norm = add("local_norm", Norm(options.norm, hidden)),
                       .global_norm = add("global_norm", Norm(options.norm, hidden)),
                       .mlp_in = add("mlp_in", torch::nn::Linear(hidden, 2 * hidden)),
                       .mlp_out = add("mlp_out", torch::nn::Linear(2 * hidden, hidden)),
                       .mlp_norm = add("mlp_norm", Norm(options.norm, hidden))});
  }
  end_layers(NormKind::kNone);
}

torch::Tensor GpsImpl::embed(torch::Tensor h, const graph::Gso& gso) {
  const double drop = is_training() ? options().dropout : 0.0;
  for (Layer& layer : layers_) {
    const torch::Tensor local = h + ops::dropout(layer.local->forward(h, gso), drop);
    const torch::Tensor global = h + ops::dropout(layer.global->forward(h, gso), drop);
    const torch::Tensor y = layer.local_norm->forward(local) + layer.global_norm->forward(global);
    h = layer.mlp_norm->forward(ops::feed_forward(y,
                                                  {.norm = {},
                                                   .w1 = layer.mlp_in->weight,
                                                   .b1 = layer.mlp_in->bias,
                                                   .w2 = layer.mlp_out->weight,
                                                   .b2 = layer.mlp_out->bias},
                                                  {.activation = options().activation,
                                                   .drop_hidden = drop,
                                                   .drop_out = drop,
                                                   .residual = y}));
  }
  return h;
}

}  // namespace mpssm::nn
