// SPDX-License-Identifier: MIT
#include "mpssm/analysis/attribution.h"

#include <algorithm>
#include <fmt/core.h>
#include <numeric>
#include <stdexcept>

#include <torch/torch.h>

#include "mpssm/analysis/evaluating.h"
#include "mpssm/analysis/walk.h"
#include "mpssm/nn/model.h"
#include "mpssm/ops/recurrence.h"

namespace mpssm::analysis {
namespace {

std::vector<double> sum_by_node(const torch::Tensor& products) {
  // [(T,) N, C] -> [N]
  torch::Tensor sums = products.detach().to(torch::kDouble).sum(-1);
  if (sums.dim() > 1) sums = sums.sum(0);
  sums = sums.contiguous();
  return {sums.data_ptr<double>(), sums.data_ptr<double>() + sums.numel()};
}

void check_target(const AttributionQuestion& question) {
  const std::int64_t nodes = question.gso.num_nodes();
  if (question.target >= 0 && question.target < nodes) return;
  throw std::out_of_range(
      fmt::format("attribution: expected a node below {}, got {}", nodes, question.target));
}

}  // namespace

StateShares state_shares(const AttributionQuestion& question) {
  check_target(question);
  nn::ModelImpl& model = model_of(question.network, "attribution");
  const std::int64_t blocks = std::ssize(model.blocks());
  if (question.block < 1 || question.block > blocks) {
    throw std::out_of_range(
        fmt::format("attribution: expected a block from 1 to {}, got {}", blocks, question.block));
  }
  const Evaluating evaluating(model);
  const std::size_t b = static_cast<std::size_t>(question.block) - 1;
  torch::Tensor c, w;
  const graph::Operators gso =
      model.block_operator(static_cast<std::int64_t>(b), question.x, question.gso);
  {
    const torch::NoGradGuard no_grad;
    const nn::Block& block = model.blocks()[b];
    c = torch::matmul(model.trace(question.x, question.gso).u[b].to(torch::kDouble),
                      block->w_in.to(torch::kDouble));
    w = block->w_state->forward();
    w = w.to(w.is_complex() ? torch::kComplexDouble : torch::kDouble);
  }
  const torch::AutoGradMode with_grad(true);
  c = c.detach().requires_grad_();
  const ops::RecurrenceWeights weights{.w_state = w};
  const bool is_static = model.options().mode == nn::Mode::kStatic;
  const torch::Tensor states =
      is_static ? ops::recurrence_static(gso, c, weights, model.options().hops + 1).output
                : ops::recurrence_temporal(gso, c, weights,
                                           {.hops_per_step = model.options().hops_per_step})
                      .output;
  const torch::Tensor state = states[question.target];
  StateShares shares{.block = question.block, .size = state.norm().item<double>()};
  if (shares.size == 0.0) {
    shares.of_node.assign(static_cast<std::size_t>(question.gso.num_nodes()), 0.0);
    return shares;
  }
  // <X_i, X_i> is linear in c with the right factor held: one gradient has every node's part.
  const torch::Tensor gradient = torch::autograd::grad({(state * state.detach()).sum()}, {c})[0];
  shares.of_node = sum_by_node(gradient * c / (shares.size * shares.size));
  return shares;
}

PathShares path_shares(const AttributionQuestion& question) {
  check_target(question);
  const Evaluating evaluating(question.network);
  const torch::Tensor x = question.x.detach();
  const torch::Tensor start = x.mean(-2, /*keepdim=*/true).expand_as(x);
  const torch::Tensor way = x - start;
  const std::int64_t row = question.predicts_graphs ? 0 : question.target;
  const auto outputs_at = [&](const torch::Tensor& input) {
    return question.network.forward(input, question.gso)[row];
  };
  PathShares shares{.output = question.output, .steps = question.steps};
  {
    const torch::NoGradGuard no_grad;
    const torch::Tensor here = outputs_at(x).contiguous();
    if (shares.output < 0) shares.output = here.argmax().item<std::int64_t>();
    shares.value = here[shares.output].item<double>();
    shares.baseline = outputs_at(start.contiguous())[shares.output].item<double>();
  }
  const torch::AutoGradMode with_grad(true);
  torch::Tensor sum = torch::zeros_like(x, torch::kDouble);
  for (std::int64_t s = 0; s < question.steps; ++s) {
    const double place = (static_cast<double>(s) + 0.5) / static_cast<double>(question.steps);
    const torch::Tensor input = (start + place * way).contiguous().requires_grad_();
    sum += torch::autograd::grad({outputs_at(input)[shares.output]}, {input})[0];
  }
  shares.of_node = sum_by_node(sum * way / static_cast<double>(question.steps));
  shares.gap = shares.value - shares.baseline -
               std::accumulate(shares.of_node.begin(), shares.of_node.end(), 0.0);
  return shares;
}

Attribution answer(const AttributionQuestion& question) {
  return {.target = question.target,
          .state = state_shares(question),
          .prediction = path_shares(question),
          .hops = hops_to(question.gso, question.target)};
}

}  // namespace mpssm::analysis
