// SPDX-License-Identifier: MIT
#include "mpssm/nn/baselines/graphssm.h"

#include <cmath>
#include <fmt/core.h>
#include <numbers>

#include <torch/types.h>

#include "mpssm/ops/causal_convolution.h"
#include "mpssm/ops/linear.h"
#include "mpssm/ops/spmm.h"

namespace mpssm::nn {

GraphSsmImpl::GraphSsmImpl(const LayeredOptions& options, std::int64_t states)
    : LayeredImpl("GraphSsm", options) {
  TORCH_CHECK_VALUE(states >= 1, "GraphSsm: expected states >= 1, got ", states);
  TORCH_CHECK_VALUE(options.forecasts, "GraphSsm: expected a forecast, got data without time");
  const std::int64_t hidden = options.hidden_channels;
  for (std::int64_t i = 0; i < options.num_layers; ++i) {
    begin_layer();
    const auto number = [&](const char* name, const torch::Tensor& start) {
      return register_parameter(fmt::format("{}_{}", name, i), start);
    };
    const auto map = [&](const char* name) {
      return register_module(fmt::format("{}_{}", name, i), torch::nn::Linear(hidden, hidden));
    };
    const torch::Tensor frequency =
        std::numbers::pi * torch::arange(states).to(torch::kFloat).expand({hidden, states});
    layers_.push_back(
        {.graph = map("graph"),
         .mix = number("mix", torch::zeros({hidden})),
         // From a thousandth to a tenth of a time unit, as S4 starts.
         .log_step = number("log_step", std::log(1e-3) + std::log(1e2) * torch::rand({hidden})),
         .log_decay = number("log_decay", torch::full({hidden, states}, std::log(0.5))),
         .frequency = number("frequency", frequency.contiguous()),
         .gain = number("gain", torch::randn({hidden, states, 2}) * std::sqrt(0.5)),
         .direct = number("direct", torch::randn({hidden})),
         .out = map("out")});
  }
  end_layers(options.norm);
}

torch::Tensor GraphSsmImpl::kernel(std::int64_t index, std::int64_t steps) const {
  const Layer& layer = layers_[index];
  const torch::Tensor step = torch::exp(layer.log_step).unsqueeze(-1);  // [C, 1]
  const torch::Tensor rate = torch::complex(-torch::exp(layer.log_decay), layer.frequency);
  const torch::Tensor gain =
      torch::view_as_complex(layer.gain) * (torch::exp(step * rate) - 1.0) / rate;
  const torch::Tensor time =
      torch::arange(steps).to(step.scalar_type()).unsqueeze(-1).unsqueeze(-1) * step;  // [T, C, 1]
  const torch::Tensor size = torch::exp(-time * torch::exp(layer.log_decay));
  const torch::Tensor phase = time * layer.frequency;
  const torch::Tensor each =
      torch::real(gain) * torch::cos(phase) - torch::imag(gain) * torch::sin(phase);
  const torch::Tensor response = 2.0 * (size * each).sum(-1);  // [T, C]
  return torch::cat({response.slice(0, 0, 1) + layer.direct, response.slice(0, 1)});
}

torch::Tensor GraphSsmImpl::embed(torch::Tensor h, const graph::Gso& gso) {
  for (std::int64_t i = 0; i < options().num_layers; ++i) {
    const Layer& layer = layers_[i];
    const torch::Tensor moved =
        activate(options().activation,
                 ops::linear(ops::spmm(gso, norm(i, h)), layer.graph->weight, layer.graph->bias));
    const torch::Tensor mix = torch::sigmoid(layer.mix);
    const torch::Tensor mixed = ops::causal_convolution(moved, torch::stack({1.0 - mix, mix}));
    const torch::Tensor state = ops::causal_convolution(mixed, kernel(i, h.size(-3)));
    h = leave(
        h, ops::linear(activate(options().activation, state), layer.out->weight, layer.out->bias));
  }
  return h;
}

}  // namespace mpssm::nn
