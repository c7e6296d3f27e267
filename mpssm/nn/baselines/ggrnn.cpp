// SPDX-License-Identifier: MIT
#include "mpssm/nn/baselines/ggrnn.h"

#include <fmt/core.h>

#include <torch/types.h>

#include "mpssm/ops/linear.h"
#include "mpssm/ops/spmm.h"

namespace mpssm::nn {
namespace {

/// h, A h, ..., A^hops h side by side.
torch::Tensor shifted(const torch::Tensor& h, const graph::Gso& gso, std::int64_t hops) {
  std::vector<torch::Tensor> powers = {h};
  for (std::int64_t j = 0; j < hops; ++j) powers.push_back(ops::spmm(gso, powers.back()));
  return hops == 0 ? h : torch::cat(powers, -1);
}

}  // namespace

GgrnnImpl::GgrnnImpl(const LayeredOptions& options, std::int64_t hops)
    : LayeredImpl("Ggrnn", options), hops_(hops) {
  TORCH_CHECK_VALUE(hops >= 0, "Ggrnn: expected hops >= 0, got ", hops);
  TORCH_CHECK_VALUE(options.forecasts, "Ggrnn: expected a forecast, got data without time");
  const std::int64_t hidden = options.hidden_channels;
  const std::int64_t filters = (hops + 1) * hidden;
  for (std::int64_t i = 0; i < options.num_layers; ++i) {
    begin_layer();
    input_.push_back(
        register_module(fmt::format("input_{}", i), torch::nn::Linear(filters, hidden)));
    state_.push_back(
        register_module(fmt::format("state_{}", i),
                        torch::nn::Linear(torch::nn::LinearOptions(filters, hidden).bias(false))));
  }
  end_layers(options.norm);
}

torch::Tensor GgrnnImpl::embed(torch::Tensor h, const graph::Gso& gso) {
  for (std::int64_t i = 0; i < options().num_layers; ++i) {
    const torch::Tensor driven =
        ops::linear(shifted(norm(i, h), gso, hops_), input_[i]->weight, input_[i]->bias);
    std::vector<torch::Tensor> states;
    for (std::int64_t t = 0; t < h.size(-3); ++t) {
      torch::Tensor x = driven.select(-3, t);
      if (t > 0) x = x + ops::linear(shifted(states.back(), gso, hops_), state_[i]->weight, {});
      states.push_back(activate(options().activation, x));
    }
    h = leave(h, torch::stack(states, -3));
  }
  return h;
}

}  // namespace mpssm::nn
