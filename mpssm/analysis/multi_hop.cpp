// SPDX-License-Identifier: MIT
#include "mpssm/analysis/multi_hop.h"

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>

#include "mpssm/analysis/walk.h"
#include "mpssm/ops/runtime.h"

namespace mpssm::analysis {
namespace {

/// B W^i for i = 0 .. hops, in double: [hops + 1, numbers of B].
at::Tensor weights_of_hops(const at::Tensor& b, const at::Tensor& w, std::int64_t hops) {
  const bool is_diagonal = w.is_complex();
  at::Tensor power = b.detach().to(at::kDouble);
  if (is_diagonal) power = at::view_as_complex(power.reshape({b.size(0), -1, 2}).contiguous());
  const at::Tensor by = w.detach().to(is_diagonal ? at::kComplexDouble : at::kDouble);
  std::vector<at::Tensor> rows;
  for (std::int64_t i = 0; i <= hops; ++i) {
    if (i > 0) power = is_diagonal ? power * by : at::mm(power, by);
    rows.push_back((is_diagonal ? at::view_as_real(power) : power).reshape({-1}));
  }
  return at::stack(rows);
}

}  // namespace

BlockHops block_hops(const graph::Gso& gso, const at::Tensor& b, const at::Tensor& w,
                     std::int64_t hops, std::span<const std::int64_t> targets) {
  const at::Tensor weights = weights_of_hops(b, w, hops);
  // ||sum_i a_i B W^i||^2 = a' G a.
  const at::Tensor gram = at::mm(weights, weights.t());
  const ops::Threads threads;
  BlockHops view;
  view.weight_norm.resize(static_cast<std::size_t>(hops) + 1);
  view.by_walk.resize(view.weight_norm.size());
  for (std::int64_t i = 0; i <= hops; ++i) {
    view.weight_norm[i] = std::sqrt(std::max(gram[i][i].item<double>(), 0.0));
  }
  const auto count = static_cast<double>(targets.size());
  for (const std::int64_t target : targets) {
    Walk walk(gso, target, View::kToTarget, threads);
    at::Tensor walks = at::empty({hops + 1, gso.num_nodes()}, at::kDouble);  // (A^i)_tj
    for (std::int64_t i = 0; i <= hops; ++i) {
      if (i > 0) walk.step();
      double total = 0.0;
      for (std::int64_t j = 0; j < gso.num_nodes(); ++j) {
        walks.data_ptr<double>()[i * gso.num_nodes() + j] = walk.values()[j];
        total += std::abs(walk.values()[j]);
      }
      view.by_walk[i] += total * view.weight_norm[i] / count;
    }
    const at::Tensor squares = (walks * at::mm(gram, walks)).sum(0).contiguous();
    const std::vector<std::int32_t> distance = hops_to(gso, target);
    for (std::int64_t j = 0; j < gso.num_nodes(); ++j) {
      if (distance[j] < 0 || distance[j] > hops) continue;  // out of the block's reach
      const auto d = static_cast<std::size_t>(distance[j]);
      if (view.by_distance.size() <= d) {
        view.by_distance.resize(d + 1);
        view.nodes_at.resize(d + 1);
      }
      view.by_distance[d] += std::sqrt(std::max(squares.data_ptr<double>()[j], 0.0)) / count;
      view.nodes_at[d] += 1.0 / count;
    }
  }
  return view;
}

}  // namespace mpssm::analysis
