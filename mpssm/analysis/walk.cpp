// SPDX-License-Identifier: MIT
#include "mpssm/analysis/walk.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

#include "mpssm/engine/spmm.h"
#include "mpssm/graph/breadth_first.h"

namespace mpssm::analysis {
namespace {

void check_node(const char* name, std::int64_t node, std::int64_t num_nodes) {
  if (node >= 0 && node < num_nodes) return;
  throw std::out_of_range(
      fmt::format("{}: expected a node from 0 to {}, got {}", name, num_nodes - 1, node));
}

}  // namespace

Walk::Walk(const graph::Gso& gso, std::int64_t node, View view, const engine::Executor& executor)
    : gso_(gso),
      executor_(executor),
      rows_{.a = view == View::kFromSource ? gso_.view<double>() : gso_.transpose_view<double>(),
            .halo = 0,
            .fill = {}} {
  check_node(view == View::kFromSource ? "source" : "target", node, gso.num_nodes());
  values_.assign(static_cast<std::size_t>(gso.num_nodes()), 0.0);
  next_.resize(values_.size());
  values_[node] = 1.0;
}

Walk::Walk(const engine::HaloRows<double>& rows, std::int64_t node,
           const engine::Executor& executor)
    : executor_(executor),
      rows_(rows),
      values_(static_cast<std::size_t>(rows.own() + rows.halo), 0.0),
      next_(values_.size()) {
  if (node >= 0) values_.at(node) = 1.0;
}

void Walk::step() {
  if (rows_.fill) {
    engine::halo_spmm(rows_, values_.data(), 1, next_.data(), executor_);
  } else {
    engine::spmm(rows_.a, values_.data(), 1, next_.data(), executor_);
  }
  std::swap(values_, next_);
  ++tau_;
}

void visit_taus(Walk& walk, std::span<const std::int64_t> taus, const Progress& progress,
                const std::function<void(std::size_t)>& visit) {
  std::vector<std::pair<std::int64_t, std::size_t>> order;
  for (std::size_t i = 0; i < taus.size(); ++i) {
    if (taus[i] < 0) {
      throw std::invalid_argument(fmt::format("tau: expected 0 or more, got {}", taus[i]));
    }
    order.emplace_back(taus[i], i);
  }
  std::sort(order.begin(), order.end());
  for (const auto& [tau, position] : order) {
    while (walk.tau() < tau) {
      walk.step();
      if (progress) progress(walk.tau());
    }
    visit(position);
  }
}

Reach reach_of(std::span<const double> values, std::int64_t tau) {
  // Four sums side by side: one alone waits for each addition.
  constexpr std::size_t kLanes = 4;
  double total[kLanes] = {};
  double largest[kLanes] = {};
  double smallest[kLanes];
  std::int64_t nodes[kLanes] = {};
  std::fill_n(smallest, kLanes, std::numeric_limits<double>::infinity());
  const auto take = [&](std::size_t i, std::size_t lane) {
    const double size = std::abs(values[i]);
    total[lane] += size;
    largest[lane] = std::max(largest[lane], size);
    nodes[lane] += size > 0.0 ? 1 : 0;
    smallest[lane] =
        std::min(smallest[lane], size > 0.0 ? size : std::numeric_limits<double>::infinity());
  };
  std::size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) take(i + lane, lane);
  }
  for (; i < values.size(); ++i) take(i, 0);
  Reach reach{.tau = tau};
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    reach.total += total[lane];
    reach.largest = std::max(reach.largest, largest[lane]);
    reach.nodes += nodes[lane];
  }
  if (reach.nodes > 0) reach.smallest = *std::min_element(smallest, smallest + kLanes);
  return reach;
}

std::vector<double> pair_profile(const graph::Gso& gso, std::int64_t source, std::int64_t target,
                                 std::span<const std::int64_t> taus,
                                 const engine::Executor& executor, const Progress& progress) {
  check_node("target", target, gso.num_nodes());
  Walk walk(gso, source, View::kFromSource, executor);
  std::vector<double> profile(taus.size());
  visit_taus(walk, taus, progress, [&](std::size_t i) { profile[i] = walk.values()[target]; });
  return profile;
}

std::vector<double> pair_profile(const graph::LowRankOperator& a, std::int64_t source,
                                 std::int64_t target, std::span<const std::int64_t> taus) {
  check_node("source", source, a.num_nodes());
  check_node("target", target, a.num_nodes());
  const std::int64_t rank = a.rank();
  const auto p = a.p_view<double>();
  const auto q = a.q_view<double>();
  const auto m = a.among_virtual().view<double>();
  // What the virtual nodes hold of the source, after the first hop and then by M.
  std::vector<double> held(static_cast<std::size_t>(m.num_rows), 0.0);
  for (std::int64_t e = q.row_ptr[source]; e < q.row_ptr[source + 1]; ++e) {
    held[q.col[e]] = q.value[e];
  }
  const std::int64_t first = q.col[q.row_ptr[source]];  // of the source's graph
  std::vector<double> profile(taus.size(), 0.0);
  std::int64_t longest = 0;
  for (std::size_t i = 0; i < taus.size(); ++i) {
    if (taus[i] == 0) profile[i] = source == target ? 1.0 : 0.0;
    longest = std::max(longest, taus[i]);
  }
  for (std::int64_t tau = 1; tau <= longest; ++tau) {
    double arrives = 0.0;
    for (std::int64_t e = p.row_ptr[target]; e < p.row_ptr[target + 1]; ++e) {
      arrives += p.value[e] * held[p.col[e]];
    }
    for (std::size_t i = 0; i < taus.size(); ++i) {
      if (taus[i] == tau) profile[i] = arrives;
    }
    std::vector<double> next(held.size(), 0.0);
    for (std::int64_t k = first; k < first + rank; ++k) {
      for (std::int64_t e = m.row_ptr[k]; e < m.row_ptr[k + 1]; ++e) {
        next[k] += m.value[e] * held[m.col[e]];
      }
    }
    held.swap(next);
  }
  return profile;
}

std::vector<Reach> reach_profile(const graph::Gso& gso, std::int64_t node, View view,
                                 std::span<const std::int64_t> taus,
                                 const engine::Executor& executor, const Progress& progress) {
  Walk walk(gso, node, view, executor);
  std::vector<Reach> profile(taus.size());
  visit_taus(walk, taus, progress,
             [&](std::size_t i) { profile[i] = reach_of(walk.values(), walk.tau()); });
  return profile;
}

std::optional<std::int64_t> first_reaching(const graph::Gso& gso, std::int64_t source,
                                           std::int64_t target, double threshold,
                                           std::int64_t max_tau, const engine::Executor& executor,
                                           const Progress& progress) {
  check_node("target", target, gso.num_nodes());
  Walk walk(gso, source, View::kFromSource, executor);
  while (walk.values()[target] < threshold) {
    if (walk.tau() == max_tau) return {};
    walk.step();
    if (progress) progress(walk.tau());
  }
  return walk.tau();
}

std::vector<std::int32_t> hops_to(const graph::Gso& gso, std::int64_t target) {
  check_node("target", target, gso.num_nodes());
  const auto matrix = gso.view<double>();
  std::vector<std::int32_t> hops(static_cast<std::size_t>(gso.num_nodes()), graph::kUnreachable);
  const auto senders = [&](std::int32_t node, const auto& visit) {
    for (std::int64_t e = matrix.row_ptr[node]; e < matrix.row_ptr[node + 1]; ++e) {
      if (matrix.value[e] != 0.0) visit(matrix.col[e]);
    }
  };
  std::vector<std::int32_t> order;
  graph::breadth_first(target, senders, hops, order);
  return hops;
}

}  // namespace mpssm::analysis
