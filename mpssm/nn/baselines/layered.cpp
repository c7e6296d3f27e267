// SPDX-License-Identifier: MIT
#include "mpssm/nn/baselines/layered.h"

#include <fmt/core.h>
#include <utility>

#include <torch/types.h>

#include "mpssm/ops/dropout.h"

namespace mpssm::nn {

LayeredImpl::LayeredImpl(const char* name, const LayeredOptions& options)
    : name_(name), options_(options) {
  TORCH_CHECK_VALUE(options.in_channels >= 1 && options.hidden_channels >= 1 &&
                        options.out_channels >= 1 && options.num_layers >= 1,
                    name, ": expected in, hidden, out channels and layers >= 1, got ",
                    options.in_channels, ", ", options.hidden_channels, ", ", options.out_channels,
                    ", ", options.num_layers);
  encoder_ =
      register_module("encoder", torch::nn::Linear(options.in_channels, options.hidden_channels));
}

void LayeredImpl::begin_layer() {
  norms_.push_back(register_module(fmt::format("norm_{}", norms_.size()),
                                   Norm(options_.norm, options_.hidden_channels)));
}

void LayeredImpl::end_layers(NormKind final_norm) {
  final_norm_ = register_module("final_norm", Norm(final_norm, options_.hidden_channels));
  ReadoutOptions readout = options_.readout;
  readout.in_channels = options_.hidden_channels;
  readout.out_channels = options_.out_channels;
  readout_ = ReadoutHead(*this, readout);
}

torch::Tensor LayeredImpl::leave(const torch::Tensor& h, const torch::Tensor& y) const {
  const torch::Tensor dropped = is_training() ? ops::dropout(y, options_.dropout) : y;
  return options_.residual ? h + dropped : dropped;
}

torch::Tensor LayeredImpl::layer(std::int64_t, const torch::Tensor& h, const graph::Gso&) {
  return h;
}

torch::Tensor LayeredImpl::embed(torch::Tensor h, const graph::Gso& gso) {
  for (std::int64_t i = 0; i < options_.num_layers; ++i) {
    h = leave(h, activate(options_.activation, layer(i, norm(i, h), gso)));
  }
  return h;
}

torch::Tensor LayeredImpl::forward(const torch::Tensor& x, const graph::Operators& gso) {
  const bool has_time = options_.forecasts;
  TORCH_CHECK_VALUE(
      x.defined() && (has_time ? x.dim() >= 3 : x.dim() == 2) && x.size(-2) == gso.num_nodes() &&
          has_input_width(x, options_.in_channels, options_.vocabulary),
      name_, ": expected x of shape ", has_time ? "[..., T, N=" : "[N=", gso.num_nodes(),
      ", in_channels=", options_.in_channels, "], got ",
      x.defined() ? c10::str(x.sizes()) : "an undefined tensor");
  torch::Tensor h = encode(encoder_, options_.vocabulary, x);
  if (is_training()) h = ops::dropout(h, options_.input_dropout);
  h = embed(h, gso.only());
  if (has_time) h = h.select(-3, h.size(-3) - 1);
  return readout_.forward(final_norm_->forward(h), gso);
}

}  // namespace mpssm::nn
