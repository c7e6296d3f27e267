// SPDX-License-Identifier: MIT
#include "mpssm/analysis/model_question.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <ATen/ATen.h>

#include "mpssm/analysis/deep_limit.h"
#include "mpssm/analysis/influence.h"
#include "mpssm/analysis/multi_hop.h"
#include "mpssm/analysis/state_norms.h"
#include "mpssm/analysis/walk.h"
#include "mpssm/base/error.h"
#include "mpssm/graph/operator_groups.h"
#include "mpssm/nn/model.h"
#include "mpssm/ops/runtime.h"

namespace mpssm::analysis {
namespace {

/// Null if the network is no MP-SSM.
const nn::ModelImpl* recurrent(const nn::GraphModule& network) {
  return dynamic_cast<const nn::ModelImpl*>(&network);
}

at::Tensor jacobian_of(const ModelQuestion& question, std::int64_t target) {
  return output_jacobian(question.network, question.x, question.gso,
                         question.predicts_graphs ? 0 : target);
}

BlockAnswer answer_state(const at::Tensor& w, std::int64_t hops,
                         std::span<const std::int64_t> taus) {
  const StateReach reach = state_reach(w, hops);
  return {.hops = hops,
          .radius = reach.radius,
          .norm_at_hops = power_norms(w, std::vector<std::int64_t>{hops})[0],
          .mean_hop = reach.mean_hop,
          .forgets_after = reach.forgets_after,
          .norms = power_norms(w, taus)};
}

/// W of a block is made of those of its groups: the largest norm counts, and the slowest to forget.
/// The mean hop is weighted by the channels.
BlockAnswer all_groups(std::vector<BlockAnswer> groups) {
  BlockAnswer all = groups.front();
  all.gso.clear();
  all.channels = 0;
  double mean_hop = 0.0;
  for (const BlockAnswer& group : groups) {
    all.radius = std::max(all.radius, group.radius);
    all.norm_at_hops = std::max(all.norm_at_hops, group.norm_at_hops);
    const bool never = all.forgets_after < 0 || group.forgets_after < 0;
    all.forgets_after = never ? -1 : std::max(all.forgets_after, group.forgets_after);
    for (std::size_t t = 0; t < all.norms.size(); ++t) {
      all.norms[t] = std::max(all.norms[t], group.norms[t]);
    }
    mean_hop += group.mean_hop * static_cast<double>(group.channels);
    all.channels += group.channels;
  }
  all.mean_hop = mean_hop / static_cast<double>(all.channels);
  all.channels = 0;
  all.groups = std::move(groups);
  return all;
}

/// |(A^tau)_ij| ||W^tau|| for each tau.
std::vector<double> pair_values(const ModelQuestion& question, const graph::Operators& gso,
                                std::span<const double> norms) {
  std::vector<double> value =
      gso.is_low_rank(0)
          ? pair_profile(gso.low_rank(0), question.source, question.target, question.taus)
          : pair_profile(gso.only(), question.source, question.target, question.taus,
                         ops::Threads());
  for (std::size_t t = 0; t < value.size(); ++t) value[t] = std::abs(value[t]) * norms[t];
  return value;
}

std::vector<BlockAnswer> answer_blocks(const ModelQuestion& question) {
  const nn::ModelImpl* model = recurrent(question.network);
  if (model == nullptr) return {};
  const bool is_static = model->options().mode == nn::Mode::kStatic;
  const std::int64_t hops =
      is_static ? model->options().hops : (question.num_steps - 1) * model->options().hops_per_step;
  std::vector<BlockAnswer> answers;
  for (const nn::Block& block : model->blocks()) {
    std::vector<BlockAnswer> groups;
    for (const at::Tensor& w : block->w_state->of_groups()) {
      groups.push_back(answer_state(w.detach(), hops, question.taus));
    }
    if (groups.size() == 1) {
      answers.push_back(std::move(groups.front()));
      continue;
    }
    for (std::size_t g = 0; g < groups.size(); ++g) {
      groups[g].gso = question.gso.name(static_cast<std::int64_t>(g));
      groups[g].channels = block->w_state->options().group_channels[g];
    }
    answers.push_back(all_groups(std::move(groups)));
  }
  return answers;
}

/// At most so many nodes, evenly spread, stand for all.
std::vector<std::int64_t> some_nodes(std::int64_t num_nodes) {
  const std::int64_t count = std::min<std::int64_t>(num_nodes, 32);
  std::vector<std::int64_t> some;
  for (std::int64_t k = 0; k < count; ++k) some.push_back((2 * k + 1) * num_nodes / (2 * count));
  return some;
}

std::vector<BlockHops> answer_multi_hop(const ModelQuestion& question) {
  const nn::ModelImpl* model = recurrent(question.network);
  if (model == nullptr) return {};
  if (!question.gso.is_single()) {
    throw base::Error("multi-hop view", "expected a network with one operator, got several");
  }
  const bool is_static = model->options().mode == nn::Mode::kStatic;
  if (!is_static && model->options().hops_per_step > 1) {
    throw base::Error("multi-hop view", "expected one hop per step, got several");
  }
  const std::int64_t hops = is_static ? model->options().hops : question.num_steps - 1;
  const std::vector<std::int64_t> targets =
      question.targets.empty() ? some_nodes(question.gso.num_nodes()) : question.targets;
  std::vector<BlockHops> views;
  for (const nn::Block& block : model->blocks()) {
    views.push_back(block_hops(question.gso.only(), block->w_in, block->w_state->forward().detach(),
                               hops, targets));
  }
  return views;
}

ModelPairAnswer answer_model_pair(const ModelQuestion& question,
                                  std::span<const BlockAnswer> blocks) {
  const at::Tensor jacobian =
      pair_jacobian(jacobian_of(question, question.target), question.source);
  ModelPairAnswer answer{.end_to_end = {.spectral_norm = spectral_norm(jacobian),
                                        .l1 = jacobian.abs().sum().item<double>(),
                                        .outputs = jacobian.size(0),
                                        .inputs = jacobian.size(1)},
                         .block = question.block};
  if (blocks.empty()) return answer;
  const BlockAnswer& block = blocks[question.block - 1];
  // The block's own operators, with what it has learned of them.
  const graph::Operators own = dynamic_cast<nn::ModelImpl&>(question.network)
                                   .block_operator(question.block - 1, question.x, question.gso);
  if (!block.groups.empty()) {
    answer.value.assign(question.taus.size(), 0.0);
    for (std::size_t g = 0; g < block.groups.size(); ++g) {
      answer.of_group.push_back(
          pair_values(question, own.alone(static_cast<std::int64_t>(g)), block.groups[g].norms));
      for (std::size_t t = 0; t < answer.value.size(); ++t) {
        answer.value[t] = std::max(answer.value[t], answer.of_group.back()[t]);
      }
    }
    return answer;
  }
  answer.value = pair_values(question, own, block.norms);
  if (own.kind(0) == graph::GsoKind::kSymNormalized && why_no_deep_limit(question.graph).empty()) {
    const DeepLimit limit(question.graph);
    answer.limit = limit.limit(question.target, question.source);
    if (question.lambda_star) answer.lambda_star = limit.lambda_star(question.source);
  }
  return answer;
}

Dependence answer_dependence(const ModelQuestion& question, std::span<const std::int64_t> targets,
                             const BlockProgress& progress) {
  Dependence answer{.run = question.run};
  const graph::Gso reached = graph::united(question.gso);
  const auto count = static_cast<double>(targets.size());
  for (const std::int64_t target : targets) {
    Influence influence = influence_of(jacobian_of(question, target), reached, target);
    const double total = std::accumulate(influence.of_hop.begin(), influence.of_hop.end(), 0.0);
    answer.share_of_hop.resize(std::max(answer.share_of_hop.size(), influence.of_hop.size()));
    for (std::size_t hop = 0; total > 0.0 && hop < influence.of_hop.size(); ++hop) {
      answer.share_of_hop[hop] += influence.of_hop[hop] / total / count;
    }
    answer.mean_hop += influence.mean_hop / count;
    std::vector<std::int64_t> top = most_influential(influence.of_node, question.top);
    answer.predictions.push_back({target, std::move(influence), std::move(top)});
    if (progress) progress(static_cast<double>(answer.predictions.size()) / count);
  }
  return answer;
}

GraphPrediction answer_graph_prediction(const ModelQuestion& question) {
  GraphPrediction answer{.of_node = influence_of_nodes(jacobian_of(question, 0))};
  answer.top = most_influential(answer.of_node, question.top);
  return answer;
}

}  // namespace

std::int64_t num_blocks(const nn::GraphModule& network) {
  const nn::ModelImpl* model = recurrent(network);
  return model == nullptr ? 0 : std::ssize(model->blocks());
}

ModelAnswer answer(const ModelQuestion& question, const Stages& stages) {
  ModelAnswer answer{.run = question.run,
                     .taus = question.taus,
                     .source = question.source,
                     .target = question.target,
                     .nodes = question.gso.num_nodes(),
                     .blocks = answer_blocks(question)};
  if (question.multi_hop) answer.multi_hop = answer_multi_hop(question);
  if (question.source >= 0) answer.pair = answer_model_pair(question, answer.blocks);
  if (question.predicts_graphs) answer.whole = answer_graph_prediction(question);
  if (question.targets.empty()) return answer;
  for (const ModelQuestion* asked : {&question, question.compare}) {
    if (asked == nullptr) continue;
    answer.runs.push_back(answer_dependence(
        *asked, question.targets, stages ? stages("Jacobians of " + asked->run) : BlockProgress()));
  }
  return answer;
}

}  // namespace mpssm::analysis
