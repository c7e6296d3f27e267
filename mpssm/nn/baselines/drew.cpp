// SPDX-License-Identifier: MIT
#include "mpssm/nn/baselines/drew.h"

#include <algorithm>
#include <fmt/core.h>

#include <torch/types.h>

#include "mpssm/graph/pattern_operators.h"
#include "mpssm/ops/linear.h"
#include "mpssm/ops/spmm.h"

namespace mpssm::nn {

DrewImpl::DrewImpl(const LayeredOptions& options, std::int64_t delay)
    : LayeredImpl("Drew", options), delay_(delay) {
  TORCH_CHECK_VALUE(delay >= 1, "Drew: expected a delay >= 1, got ", delay);
  const std::int64_t hidden = options.hidden_channels;
  for (std::int64_t s = 0; s < options.num_layers; ++s) {
    begin_layer();
    layers_.push_back(
        register_module(fmt::format("layer_{}", s), torch::nn::Linear((s + 1) * hidden, hidden)));
  }
  end_layers(options.norm);
}

torch::Tensor DrewImpl::embed(torch::Tensor h, const graph::Gso& gso) {
  const std::vector<graph::Gso>& at_distance =
      at_distance_.get(gso, [&](const graph::Gso& pattern) {
        return graph::exact_distance_operators(pattern, options().num_layers);
      });
  std::vector<torch::Tensor> u;
  for (std::int64_t s = 0; s < options().num_layers; ++s) {
    u.push_back(norm(s, h));
    std::vector<torch::Tensor> gathered;
    for (std::int64_t i = 1; i <= s + 1; ++i) {
      const std::int64_t late = std::max<std::int64_t>(0, i - delay_);
      gathered.push_back(ops::spmm(at_distance[i - 1], u[s - late]));
    }
    const torch::Tensor y =
        ops::linear(torch::cat(gathered, -1), layers_[s]->weight, layers_[s]->bias);
    h = leave(h, activate(options().activation, y));
  }
  return h;
}

}  // namespace mpssm::nn
