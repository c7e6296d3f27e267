// SPDX-License-Identifier: MIT
#include "mpssm/analysis/influence.h"

#include <algorithm>
#include <fmt/core.h>
#include <numeric>
#include <stdexcept>
#include <string>

#include <torch/torch.h>

#include "mpssm/analysis/walk.h"

namespace mpssm::analysis {

at::Tensor output_jacobian(nn::GraphModule& model, const at::Tensor& x, const graph::Operators& gso,
                           std::int64_t target) {
  const bool was_training = model.is_training();
  model.eval();
  const torch::Tensor input = x.detach().clone().requires_grad_();
  const torch::Tensor output = model.forward(input, gso);
  model.train(was_training);
  if (target < 0 || target >= output.size(0)) {
    throw std::out_of_range(
        fmt::format("target: expected 0 to {}, got {}", output.size(0) - 1, target));
  }
  std::vector<torch::Tensor> rows;
  const std::int64_t count = output.size(1);
  for (std::int64_t f = 0; f < count; ++f) {
    rows.push_back(torch::autograd::grad({output[target][f]}, {input}, {},
                                         /*retain_graph=*/f + 1 < count)[0]);
  }
  torch::Tensor jacobian = torch::stack(rows);
  if (!torch::isfinite(jacobian).all().item<bool>()) {
    throw std::runtime_error(
        "the derivative of this prediction is not finite: weights or features are too large");
  }
  return jacobian;
}

at::Tensor pair_jacobian(const at::Tensor& output_jacobian, std::int64_t source) {
  return output_jacobian.select(-2, source).flatten(1);
}

double spectral_norm(const at::Tensor& matrix) {
  return std::get<1>(torch::linalg_svd(matrix.to(torch::kDouble))).max().item<double>();
}

std::vector<double> influence_of_nodes(const at::Tensor& output_jacobian) {
  // [out, (T,) N, in] -> [N]
  torch::Tensor sizes = output_jacobian.abs().to(torch::kDouble).sum(-1);
  while (sizes.dim() > 1) sizes = sizes.sum(0);
  sizes = sizes.contiguous();
  return {sizes.data_ptr<double>(), sizes.data_ptr<double>() + sizes.numel()};
}

Influence influence_of(const at::Tensor& output_jacobian, const graph::Gso& gso,
                       std::int64_t target) {
  Influence influence;
  influence.of_node = influence_of_nodes(output_jacobian);
  influence.hops = hops_to(gso, target);
  const std::int32_t farthest = *std::max_element(influence.hops.begin(), influence.hops.end());
  influence.of_hop.resize(static_cast<std::size_t>(farthest) + 1);
  influence.nodes_at.resize(influence.of_hop.size());
  double total = 0.0;
  double weighted = 0.0;
  for (std::size_t j = 0; j < influence.of_node.size(); ++j) {
    const std::int32_t hops = influence.hops[j];
    if (hops < 0) continue;
    influence.of_hop[hops] += influence.of_node[j];
    ++influence.nodes_at[hops];
    total += influence.of_node[j];
    weighted += hops * influence.of_node[j];
  }
  if (total > 0.0) influence.mean_hop = weighted / total;
  return influence;
}

std::vector<std::int64_t> most_influential(std::span<const double> of_node, std::int64_t count) {
  std::vector<std::int64_t> nodes(of_node.size());
  std::iota(nodes.begin(), nodes.end(), 0);
  const auto kept = std::min<std::int64_t>(count, std::ssize(nodes));
  std::partial_sort(nodes.begin(), nodes.begin() + kept, nodes.end(), [&](auto a, auto b) {
    const double left = of_node[a];
    const double right = of_node[b];
    return left != right ? left > right : a < b;
  });
  nodes.resize(static_cast<std::size_t>(kept));
  return nodes;
}

}  // namespace mpssm::analysis
