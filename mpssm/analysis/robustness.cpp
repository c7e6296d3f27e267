// SPDX-License-Identifier: MIT
#include "mpssm/analysis/robustness.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <functional>
#include <stdexcept>
#include <string>

#include <torch/torch.h>

#include "mpssm/analysis/evaluating.h"
#include "mpssm/engine/spmm.h"
#include "mpssm/ops/generator.h"
#include "mpssm/ops/reference.h"
#include "mpssm/ops/runtime.h"

namespace mpssm::analysis {
namespace {

/// Bounds on the change of a row of channels, for each node: [(T,) N], in double.
using Bounds = torch::Tensor;

constexpr double kNormEpsilon = 1e-5;  // of layer and batch norms alike

double matrix_norm(const torch::Tensor& matrix) {
  return std::get<1>(torch::linalg_svd(matrix.detach().to(torch::kDouble))).max().item<double>();
}

double steepest_slope(engine::Activation activation) {
  // Of x Phi(x), at sqrt(2): Phi(sqrt 2) + sqrt(2) phi(sqrt 2) = 1.12890...
  return activation == engine::Activation::kGelu ? 1.129 : 1.0;
}

/// ||B W^tau|| for tau = 0 .. hops.
std::vector<double> input_norms(const nn::BlockImpl& block, std::int64_t hops) {
  const torch::Tensor w = block.w_state->forward().detach();
  torch::Tensor power = block.w_in.detach();  // B W^tau, [in, C]
  std::vector<double> norms;
  for (std::int64_t tau = 0; tau <= hops; ++tau) {
    norms.push_back(matrix_norm(power));
    if (tau < hops) power = ops::reference_times_w(power, w);
  }
  return norms;
}

/// How far norm(h) moves if h moves by `moved`.
Bounds after_norm(const nn::NormImpl& norm, const torch::Tensor& h, const Bounds& moved) {
  if (norm.is_layer()) {
    const torch::Tensor largest = norm.layer_weights().scale.detach().abs().max();
    const auto channels = static_cast<double>(h.size(-1));
    const torch::Tensor centred = h - h.mean(-1, true);
    const torch::Tensor nearest = (centred.norm(2, -1) - moved).clamp_min(0.0);
    const torch::Tensor deviation = (nearest.square() / channels + kNormEpsilon).sqrt();
    // Whatever comes in, what comes out lies in a ball of radius sqrt(channels).
    return largest *
           torch::minimum(moved / deviation, torch::full_like(moved, 2.0 * std::sqrt(channels)));
  }
  const auto buffers = norm.named_buffers();
  if (!buffers.contains("batch.running_var")) return moved;
  const auto parameters = norm.named_parameters();
  const torch::Tensor factor = parameters["batch.weight"].detach().abs() /
                               (buffers["batch.running_var"] + kNormEpsilon).sqrt();
  return moved * factor.max();
}

/// y = |A| x on one vector of the nodes.
torch::Tensor absolute_product(const graph::Gso& absolute, const torch::Tensor& x) {
  const torch::Tensor from = x.contiguous();
  torch::Tensor to = torch::empty_like(from);
  engine::spmm(absolute.view<double>(), from.data_ptr<double>(), 1, to.data_ptr<double>(),
               ops::Threads());
  return to;
}

/// Of X, from those of u: the sum over the hops (and steps) of what the nodes may add.
Bounds after_recurrence(const graph::Gso& absolute, const nn::BlockImpl& block, const Bounds& moved,
                        std::int64_t hops) {
  const bool is_series = moved.dim() == 2;
  const std::int64_t steps = is_series ? moved.size(0) : 1;
  const std::vector<double> norms = input_norms(block, is_series ? steps - 1 : hops);
  torch::Tensor sum = torch::zeros_like(moved);
  for (std::int64_t s = 0; s < steps; ++s) {
    torch::Tensor walk = is_series ? moved[s] : moved;
    for (std::size_t tau = 0; tau < norms.size(); ++tau) {
      if (tau > 0) walk = absolute_product(absolute, walk);
      if (!is_series) {
        sum += norms[tau] * walk;
      } else if (s + static_cast<std::int64_t>(tau) < steps) {
        sum[s + static_cast<std::int64_t>(tau)] += norms[tau] * walk;
      }
    }
  }
  return sum;
}

/// Of the block's output, from those of its state.
Bounds after_mlp(const nn::BlockImpl& block, const torch::Tensor& state, const Bounds& moved) {
  torch::Tensor x = state;
  Bounds bounds = moved;
  if (block.w_out.defined()) {
    x = torch::matmul(x, block.w_out.detach());
    bounds = bounds * matrix_norm(block.w_out);
  }
  return after_norm(*block.state_norm, x, bounds) * matrix_norm(block.mlp_in->weight) *
         steepest_slope(block.options().activation) * matrix_norm(block.mlp_out->weight);
}

struct NetworkBounds {
  std::vector<Bounds> state;  ///< of each block
  Bounds readout;             ///< of norm(H), which the readout reads
};

NetworkBounds bounds_of(nn::ModelImpl& model, const nn::ModelImpl::Trace& trace,
                        const graph::Gso& absolute, const Bounds& of_features) {
  NetworkBounds bounds;
  Bounds h = of_features * matrix_norm(model.encoder()->weight);
  for (std::size_t b = 0; b < model.blocks().size(); ++b) {
    const nn::BlockImpl& block = *model.blocks()[b];
    Bounds state = after_recurrence(absolute, block, after_norm(*model.norms()[b], trace.h[b], h),
                                    model.options().hops);
    // A forecast reads the last step of the last block alone.
    const bool drops_time = trace.state[b].dim() < trace.h[b].dim();
    if (drops_time) state = state[state.size(0) - 1];
    bounds.state.push_back(state);
    const Bounds y = after_mlp(block, trace.state[b], state);
    h = !model.options().residual ? y : (drops_time ? h[h.size(0) - 1] : h) + y;
  }
  bounds.readout = after_norm(*model.final_norm(), trace.h.back(), h);
  return bounds;
}

graph::Gso absolute_of(const graph::Gso& gso) {
  std::vector<double> values(gso.values<double>().begin(), gso.values<double>().end());
  for (double& value : values) value = std::abs(value);
  return gso.with_values(values);
}

/// Goes uphill on `size_of` (of the change that dx makes) inside the balls; the largest size seen.
double search(const RobustnessQuestion& question, const torch::Tensor& x,
              const std::function<torch::Tensor(const torch::Tensor&)>& size_of) {
  const torch::Tensor chosen =
      torch::tensor(at::ArrayRef<std::int64_t>(question.nodes), torch::kLong);
  // Every node (and step) to the surface of its ball: convex functions have their maxima there.
  const auto on_surface = [&](const torch::Tensor& direction) {
    const torch::Tensor rows = direction.index_select(-2, chosen);
    const torch::Tensor length = rows.norm(2, -1, true).clamp_min(1e-300);
    return torch::zeros_like(x).index_copy(-2, chosen, question.epsilon * rows / length);
  };
  double largest = 0.0;
  at::Generator generator = ops::make_generator(1);
  for (int start = 0; start < 2; ++start) {
    torch::Tensor dx = on_surface(at::randn(x.sizes(), generator, x.options()));
    for (std::int64_t step = 0; step < question.search_steps; ++step) {
      const torch::AutoGradMode with_grad(true);
      const torch::Tensor moved = (x + dx).detach().requires_grad_();
      const torch::Tensor size = size_of(moved);
      largest = std::max(largest, size.item<double>());
      const torch::Tensor gradient = torch::autograd::grad({size}, {moved})[0];
      const torch::NoGradGuard no_grad;
      const double length = gradient.norm().item<double>();
      if (!(length > 0.0)) break;
      // Large steps first, small ones to settle.
      const double rate =
          1.0 - static_cast<double>(step) / static_cast<double>(question.search_steps);
      dx = on_surface(dx + rate * on_surface(gradient));
    }
  }
  return largest;
}

}  // namespace

Robustness answer(const RobustnessQuestion& question) {
  nn::ModelImpl& model = model_with_fixed_entries(question.network, "robustness");
  if (model.options().mode == nn::Mode::kTemporal && model.options().hops_per_step > 1) {
    throw std::invalid_argument("robustness: expected one hop per step, got " +
                                std::to_string(model.options().hops_per_step));
  }
  const std::int64_t nodes = question.gso.num_nodes();
  for (const std::int64_t node : question.nodes) {
    if (node < 0 || node >= nodes) {
      throw std::out_of_range(
          fmt::format("robustness: expected nodes below {}, got {}", nodes, node));
    }
  }
  if (question.nodes.empty() || !(question.epsilon > 0.0) ||
      model.options().readout == nn::Readout::kGraph) {
    throw std::invalid_argument(
        "robustness: expected nodes to move, an epsilon above 0 and a prediction for each node");
  }
  const Evaluating evaluating(model, torch::kDouble);
  const torch::Tensor x = question.x.detach().to(torch::kDouble);
  const std::int64_t i = question.target;
  Robustness answer{.target = i,
                    .nodes = question.nodes,
                    .epsilon = question.epsilon,
                    .of_classes = question.of_classes};
  nn::ModelImpl::Trace trace;
  torch::Tensor output;  // [out]
  NetworkBounds bounds;
  {
    const torch::NoGradGuard no_grad;
    trace = model.trace(x, question.gso);
    output = model.forward(x, question.gso)[i].contiguous();
    Bounds of_features = torch::zeros(x.sizes().slice(0, x.dim() - 1), torch::kDouble);
    for (const std::int64_t node : question.nodes) {
      of_features.select(-1, node).fill_(question.epsilon);
    }
    bounds = bounds_of(model, trace, absolute_of(question.gso), of_features);
  }
  const auto at_target = [&](const torch::Tensor& per_node) {
    // Of a series, its last step.
    return per_node.dim() == 2 ? per_node[per_node.size(0) - 1][i] : per_node[i];
  };
  const auto state_at = [&](const torch::Tensor& state) {
    return state.dim() == 3 ? state[state.size(0) - 1][i] : state[i];
  };
  const std::int64_t blocks = std::ssize(model.blocks());
  for (const std::int64_t b : {std::int64_t{0}, blocks - 1}) {
    if (!answer.states.empty() && b == 0) break;
    const torch::Tensor here = state_at(trace.state[b]);
    answer.states.push_back(
        {.block = b + 1,
         .size = here.norm().item<double>(),
         .bound = at_target(bounds.state[b]).item<double>(),
         .found = search(question, x, [&](const torch::Tensor& moved) {
           return (state_at(model.trace(moved, question.gso).state[b]) - here).norm();
         })});
  }
  const auto parameters = model.named_parameters();
  if (parameters.contains("readout_1.weight") || model.has_skip()) return answer;
  // One number, the lead of a class over the next one, or the distance of a logit from zero.
  const torch::Tensor weight = parameters["readout_0.weight"].detach();
  const bool has_rival = question.of_classes && output.size(0) > 1;
  const std::int64_t best = has_rival ? output.argmax().item<std::int64_t>() : 0;
  std::int64_t rival = -1;
  double moved = at_target(bounds.readout).item<double>(), widest = 0.0;
  if (!has_rival) {
    // Of two classes, one logit: its size is the lead of the one over the other.
    answer.output = output[0].item<double>();
    if (question.of_classes) answer.output = std::abs(answer.output);
    widest = weight[0].norm().item<double>();
  } else {
    answer.output = INFINITY;
    for (std::int64_t c = 0; c < output.size(0); ++c) {
      if (c == best) continue;
      const double lead = (output[best] - output[c]).item<double>();
      widest = std::max(widest, (weight[best] - weight[c]).norm().item<double>());
      if (lead < answer.output) rival = c;
      answer.output = std::min(answer.output, lead);
    }
  }
  const double scale = question.of_classes ? 1.0 : question.scale;
  answer.output *= scale;
  answer.output_bound = scale * moved * widest;
  const torch::Tensor before = output;
  answer.output_found = scale * search(question, x, [&](const torch::Tensor& changed) {
                          const torch::Tensor change =
                              model.forward(changed, question.gso)[i] - before;
                          return (has_rival ? change[best] - change[rival] : change[0]).abs();
                        });
  return answer;
}

}  // namespace mpssm::analysis
