// SPDX-License-Identifier: MIT
#include "mpssm/nn/baselines/linear_gcn.h"

#include <fmt/core.h>
#include <string>

#include <torch/types.h>

#include "mpssm/ops/dropout.h"
#include "mpssm/ops/linear.h"
#include "mpssm/ops/spmm.h"

namespace mpssm::nn {

LinearGcnImpl::LinearGcnImpl(const LinearGcnOptions& options) : options_(options) {
  TORCH_CHECK_VALUE(options.in_channels >= 1 && options.hidden_channels >= 1 &&
                        options.out_channels >= 1 && options.num_blocks >= 1 && options.hops >= 1,
                    "LinearGcn: expected in, hidden, out channels, blocks and hops >= 1, got ",
                    options.in_channels, ", ", options.hidden_channels, ", ", options.out_channels,
                    ", ", options.num_blocks, ", ", options.hops);
  const std::int64_t hidden = options.hidden_channels;
  const auto square = [&](const char* name, std::int64_t index) {
    return register_module(fmt::format("{}{}", name, index), torch::nn::Linear(hidden, hidden));
  };
  encoder_ = register_module("encoder", torch::nn::Linear(options.in_channels, hidden));
  for (std::int64_t block = 0; block < options.num_blocks; ++block) {
    for (std::int64_t hop = 0; hop < (options.shared ? 1 : options.hops); ++hop) {
      hops_.push_back(square("hop_", std::ssize(hops_)));
    }
    if (!options.mlp) continue;
    mlp_in_.push_back(square("mlp_in_", block));
    mlp_out_.push_back(square("mlp_out_", block));
  }
  ReadoutOptions readout = options.readout;
  readout.in_channels = hidden;
  readout.out_channels = options.out_channels;
  readout_ = ReadoutHead(*this, readout);
}

torch::Tensor LinearGcnImpl::forward(const torch::Tensor& x, const graph::Operators& gso) {
  TORCH_CHECK_VALUE(x.defined() && x.dim() == 2 && x.size(0) == gso.num_nodes() &&
                        has_input_width(x, options_.in_channels, options_.vocabulary),
                    "LinearGcn: expected x of shape [N=", gso.num_nodes(),
                    ", in_channels=", options_.in_channels, "], got ",
                    x.defined() ? c10::str(x.sizes()) : "an undefined tensor");
  torch::Tensor h = encode(encoder_, options_.vocabulary, x);
  if (is_training()) h = ops::dropout(h, options_.input_dropout);
  for (std::int64_t block = 0; block < options_.num_blocks; ++block) {
    for (std::int64_t hop = 0; hop < options_.hops; ++hop) {
      const auto& layer = hops_[options_.shared ? block : block * options_.hops + hop];
      h = ops::linear(ops::spmm(gso.only(), h), layer->weight, layer->bias);
    }
    if (!options_.mlp) continue;
    h = ops::linear(h, mlp_in_[block]->weight, mlp_in_[block]->bias);
    h = activate(options_.activation, h);
    h = ops::linear(h, mlp_out_[block]->weight, mlp_out_[block]->bias);
  }
  return readout_.forward(h, gso);
}

}  // namespace mpssm::nn
