// SPDX-License-Identifier: MIT
#include "mpssm/nn/block.h"

#include <algorithm>
#include <cmath>
#include <span>

#include <torch/nn/init.h>
#include <torch/types.h>

#include "mpssm/ops/feed_forward.h"
#include "mpssm/ops/linear.h"
#include "mpssm/ops/recurrence.h"

namespace mpssm::nn {

BlockImpl::BlockImpl(const BlockOptions& options) : options_(options) {
  TORCH_CHECK_VALUE(options.in_channels >= 1 && options.state_channels >= 1 &&
                        options.out_channels >= 1 && options.hidden_channels >= 0,
                    "Block: expected in, state and out channels >= 1, got ", options.in_channels,
                    ", ", options.state_channels, ", ", options.out_channels);
  TORCH_CHECK_VALUE(options.hops >= 0, "Block: expected hops >= 0, got ", options.hops);
  TORCH_CHECK_VALUE(options.dropout >= 0.0 && options.dropout < 1.0,
                    "Block: expected dropout in [0, 1), got ", options.dropout);
  if (options_.hidden_channels == 0) options_.hidden_channels = options_.state_channels;
  options_.state.channels = options_.state_channels;
  TORCH_CHECK_VALUE(options.hops_per_step >= 1, "Block: expected hops_per_step >= 1, got ",
                    options.hops_per_step);
  if (options.group_shares.size() > 1) {
    const std::vector<std::int64_t> begins =
        graph::deal_channels(options.group_shares, options.state_channels);
    options_.state.group_channels.clear();
    for (std::size_t g = 0; g + 1 < begins.size(); ++g) {
      options_.state.group_channels.push_back(begins[g + 1] - begins[g]);
    }
  }

  w_in = register_parameter("w_in", torch::empty({options_.in_channels, options_.state_channels}));
  const double bound = 1.0 / std::sqrt(static_cast<double>(options_.in_channels));
  torch::nn::init::uniform_(w_in, -bound, bound);
  w_state = register_module("w_state", StateMatrix(options_.state));
  std::int64_t width = options_.state_channels;
  if (options_.mix_channels > 0) {
    w_out = register_parameter("w_out", torch::zeros({width, options_.mix_channels}));
    width = options_.mix_channels;
  }
  state_norm = register_module("state_norm", Norm(options_.state_norm, width));
  mlp_in = register_module("mlp_in", torch::nn::Linear(width, options_.hidden_channels));
  mlp_out = register_module("mlp_out",
                            torch::nn::Linear(options_.hidden_channels, options_.out_channels));
  if (options_.entries != EntriesKind::kFixed) {
    entries =
        register_module("entries", Entries(EntriesOptions{.kind = options_.entries,
                                                          .channels = options_.state_channels,
                                                          .num_entries = options_.num_entries}));
  }
  if (options_.factors.rank > 0) factors = register_module("factors", Factors(options_.factors));
}

torch::Tensor BlockImpl::recur_from(const torch::Tensor& c, const graph::Operators& gso, Mode mode,
                                    engine::Outputs outputs, const torch::Tensor& gso_values) {
  const auto groups = std::max<std::int64_t>(std::ssize(options_.group_shares), 1);
  TORCH_CHECK_VALUE(gso.num_groups() == groups, "Block: expected operators of ", groups,
                    " groups of channels, got ", gso.num_groups());
  const ops::RecurrenceWeights weights{w_state->forward(), {}};
  ops::RecurrenceOptions how{.plan = gso_values.defined() ? engine::Plan::kAuto : options_.plan,
                             .plan_costs = options_.plan_costs.get(),
                             .outputs = outputs,
                             .operator_calls = options_.operator_calls,
                             .hops_per_step = mode == Mode::kTemporal ? options_.hops_per_step : 1,
                             .gso_values = gso_values,
                             .precision = options_.precision};
  graph::Operators pattern = gso;
  if (!entries.is_empty()) {
    TORCH_CHECK_VALUE(!gso_values.defined(),
                      "Block: expected no entries of A beside those that it learns");
    pattern = entries->pattern(gso.only());
    how.gso_values = entries->forward(c, pattern.only());
  }
  TORCH_CHECK_VALUE((gso.factor_group() >= 0) == !factors.is_empty(), "Block: expected ",
                    factors.is_empty() ? "no adaptive operator" : "an adaptive operator",
                    " among the groups of channels");
  if (!factors.is_empty()) how.gso_values = factors->forward();
  return mode == Mode::kStatic
             ? ops::recurrence_static(pattern, c, weights, options_.hops + 1, how).output
             : ops::recurrence_temporal(pattern, c, weights, how).output;
}

torch::Tensor BlockImpl::recur(const torch::Tensor& u, const graph::Operators& gso, Mode mode,
                               engine::Outputs outputs) {
  return recur_from(ops::matmul(u, w_in, options_.precision), gso, mode, outputs);
}

graph::Operators BlockImpl::operator_for(const torch::Tensor& u, const graph::Operators& gso) {
  const auto numbers_of = [](const torch::Tensor& values) {
    return std::span<const double>(values.data_ptr<double>(),
                                   static_cast<std::size_t>(values.numel()));
  };
  if (!factors.is_empty()) {
    const torch::Tensor values = factors->forward().detach().to(torch::kDouble).contiguous();
    return gso.with_factors(numbers_of(values));
  }
  if (entries.is_empty()) return gso;
  const torch::Tensor c = u.defined() ? ops::matmul(u, w_in, options_.precision) : u;
  const graph::Gso& pattern = entries->pattern(gso.only());
  const torch::Tensor values =
      entries->forward(c, pattern).detach().to(torch::kDouble).contiguous();
  return pattern.with_values(numbers_of(values));
}

torch::Tensor BlockImpl::decode(const torch::Tensor& x, const torch::Tensor& residual,
                                double dropout, engine::RowPlace place) {
  const torch::Tensor mixed =
      w_out.defined() ? ops::matmul(x, w_out, options_.precision, place) : x;
  const torch::Tensor state = state_norm->is_layer() ? mixed : state_norm->forward(mixed);
  return ops::feed_forward(state,
                           {.norm = state_norm->layer_weights(),
                            .w1 = mlp_in->weight,
                            .b1 = mlp_in->bias,
                            .w2 = mlp_out->weight,
                            .b2 = mlp_out->bias},
                           {.activation = options_.activation,
                            .drop_hidden = is_training() ? options_.dropout : 0.0,
                            .drop_out = is_training() ? dropout : 0.0,
                            .residual = residual,
                            .precision = options_.precision,
                            .place = place});
}

torch::Tensor BlockImpl::forward(const torch::Tensor& u, const graph::Operators& gso, Mode mode,
                                 engine::Outputs outputs) {
  return decode(recur(u, gso, mode, outputs));
}

torch::Tensor BlockImpl::forward_around(const torch::Tensor& h, const Around& around,
                                        const graph::Operators& gso, Mode mode,
                                        engine::Outputs outputs) {
  const torch::Tensor c = enter(h, around.norm);
  torch::Tensor residual;
  if (around.residual) {
    const bool drops_time = mode == Mode::kTemporal && outputs == engine::Outputs::kLast;
    residual = drops_time ? h.select(-3, h.size(-3) - 1) : h;
  }
  return decode(recur_from(c, gso, mode, outputs, around.gso_values), residual, around.dropout, {});
}

torch::Tensor BlockImpl::enter(const torch::Tensor& h, NormImpl& norm, engine::RowPlace place) {
  return norm.is_layer()
             ? ops::norm_linear(h, norm.layer_weights(), w_in, options_.precision, place)
             : ops::matmul(norm.forward(h), w_in, options_.precision, place);
}

torch::Tensor BlockImpl::recur_pairs(const torch::Tensor& c, const graph::Operators& gso,
                                     std::int64_t begin, std::int64_t end) {
  TORCH_CHECK_VALUE(options_.state.kind != StateKind::kDense,
                    "Block: expected a diagonal W where channels are taken apart, got a dense one");
  TORCH_CHECK_VALUE(entries.is_empty(),
                    "Block: expected the operator's own entries where channels are taken apart");
  const ops::RecurrenceWeights weights{w_state->forward().slice(0, begin, end), {}};
  return ops::recurrence_static(gso, c, weights, options_.hops + 1,
                                {.plan = options_.plan,
                                 .plan_costs = options_.plan_costs.get(),
                                 .operator_calls = options_.operator_calls,
                                 .all_channels = options_.state_channels,
                                 .precision = options_.precision})
      .output;
}

torch::Tensor BlockImpl::leave(const torch::Tensor& x, const torch::Tensor& h, const Around& around,
                               engine::RowPlace place) {
  return decode(x, around.residual ? h : torch::Tensor(), around.dropout, place);
}

}  // namespace mpssm::nn
