// SPDX-License-Identifier: MIT
#include "mpssm/nn/baselines/gcn.h"

#include <string>

#include <torch/types.h>

#include "mpssm/ops/dropout.h"
#include "mpssm/ops/linear.h"
#include "mpssm/ops/spmm.h"

namespace mpssm::nn {

GcnImpl::GcnImpl(const GcnOptions& options) : options_(options) {
  TORCH_CHECK_VALUE(options.in_channels >= 1 && options.hidden_channels >= 1 &&
                        options.out_channels >= 1 && options.num_layers >= 1,
                    "Gcn: expected in, hidden, out channels and layers >= 1, got ",
                    options.in_channels, ", ", options.hidden_channels, ", ", options.out_channels,
                    ", ", options.num_layers);
  const std::int64_t hidden = options.hidden_channels;
  encoder_ = register_module("encoder", torch::nn::Linear(options.in_channels, hidden));
  for (std::int64_t i = 0; i < options.num_layers; ++i) {
    const std::string index = std::to_string(i);
    norms_.push_back(register_module("norm_" + index, Norm(options.norm, hidden)));
    layers_.push_back(register_module("layer_" + index, torch::nn::Linear(hidden, hidden)));
  }
  final_norm_ = register_module("final_norm", Norm(options.norm, hidden));
  ReadoutOptions readout = options.readout;
  readout.in_channels = hidden;
  readout.out_channels = options.out_channels;
  readout_ = ReadoutHead(*this, readout);
}

torch::Tensor GcnImpl::forward(const torch::Tensor& x, const graph::Operators& gso) {
  TORCH_CHECK_VALUE(x.defined() && x.dim() == 2 && x.size(0) == gso.num_nodes() &&
                        x.size(1) == options_.in_channels,
                    "Gcn: expected x of shape [N=", gso.num_nodes(),
                    ", in_channels=", options_.in_channels, "], got ",
                    x.defined() ? c10::str(x.sizes()) : "an undefined tensor");
  torch::Tensor h = ops::linear(x, encoder_->weight, encoder_->bias);
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const torch::Tensor moved = ops::spmm(gso.only(), norms_[i]->forward(h));
    torch::Tensor y =
        activate(options_.activation, ops::linear(moved, layers_[i]->weight, layers_[i]->bias));
    if (is_training()) y = ops::dropout(y, options_.dropout);
    h = options_.residual ? h + y : y;
  }
  return readout_.forward(final_norm_->forward(h), gso);
}

}  // namespace mpssm::nn
