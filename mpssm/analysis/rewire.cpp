// SPDX-License-Identifier: MIT
#include "mpssm/analysis/rewire.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "mpssm/analysis/deep_limit.h"
#include "mpssm/analysis/graph_edit.h"
#include "mpssm/analysis/walk.h"
#include "mpssm/engine/spmm.h"

namespace mpssm::analysis {
namespace {

/// Larger slopes first; ties by number, so that the order of looking does not matter.
bool is_better(const PairDerivative::Candidate& a, const PairDerivative::Candidate& b) {
  if (a.slope != b.slope) return a.slope > b.slope;
  return std::pair(a.u, a.v) < std::pair(b.u, b.v);
}

}  // namespace

PairDerivative::PairDerivative(const graph::Gso& gso, std::span<const double> degree,
                               std::int64_t source, std::int64_t target, std::int64_t tau,
                               const engine::Executor& executor)
    : tau_(tau), nodes_(gso.num_nodes()) {
  const std::int64_t steps = tau + 1;
  from_target_.resize(static_cast<std::size_t>(nodes_ * steps));
  from_source_.resize(static_cast<std::size_t>(nodes_ * tau));
  std::vector<double> last(static_cast<std::size_t>(nodes_));  // y_tau
  Walk rows(gso, target, View::kToTarget, executor);
  Walk columns(gso, source, View::kFromSource, executor);
  for (std::int64_t a = 0; a <= tau; ++a) {
    for (std::int64_t p = 0; p < nodes_; ++p) {
      from_target_[p * steps + a] = rows.values()[p];
      (a < tau ? from_source_[p * tau + (tau - 1 - a)] : last[p]) = columns.values()[p];
    }
    if (a == tau) break;
    rows.step();
    columns.step();
  }
  value_ = columns.values()[target];
  for (std::int64_t p = 0; p < nodes_; ++p) {
    const double* x = from_target_.data() + p * steps;
    const double* y = from_source_.data() + p * tau;
    root_.push_back(1.0 / std::sqrt(degree[p]));
    double loss = 0.0, squares_x = 0.0, squares_y = 0.0;
    for (std::int64_t a = 0; a < tau; ++a) {
      // y_(b+1) with b = tau - 1 - a stands one place before y_b.
      loss += x[a] * (a > 0 ? y[a - 1] : last[p]) + x[a + 1] * y[a];
      squares_x += x[a] * x[a];
      squares_y += y[a] * y[a];
    }
    loss_.push_back(loss / (2.0 * degree[p]));
    size_x_.push_back(std::sqrt(squares_x) * root_[p]);
    size_y_.push_back(std::sqrt(squares_y) * root_[p]);
  }
}

double PairDerivative::slope(std::int64_t u, std::int64_t v) const {
  const double* x_u = from_target_.data() + u * (tau_ + 1);
  const double* x_v = from_target_.data() + v * (tau_ + 1);
  const double* y_u = from_source_.data() + u * tau_;
  const double* y_v = from_source_.data() + v * tau_;
  double sum = 0.0;
  for (std::int64_t a = 0; a < tau_; ++a) sum += x_u[a] * y_v[a] + x_v[a] * y_u[a];
  return sum * root_[u] * root_[v] - loss_[u] - loss_[v];
}

double PairDerivative::bound(std::int64_t u, std::int64_t v) const {
  return size_x_[u] * size_y_[v] + size_x_[v] * size_y_[u];
}

std::vector<PairDerivative::Candidate> PairDerivative::best(const graph::Graph& graph,
                                                            std::int64_t count,
                                                            std::int64_t* looked_at) const {
  std::vector<std::int32_t> order(static_cast<std::size_t>(nodes_));
  std::iota(order.begin(), order.end(), 0);
  const auto size = [&](std::int32_t p) { return std::max(size_x_[p], size_y_[p]); };
  std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return size(a) != size(b) ? size(a) > size(b) : a < b;
  });
  std::vector<Candidate> heap;  // the worst of the kept ones at the front
  std::int64_t looked = 0;
  // Rounding must not rule out what is as good.
  constexpr double kSlack = 1.0 + 1e-12;
  const auto is_ruled_out = [&](double most) {
    return std::ssize(heap) == count && most * kSlack < heap.front().slope;
  };
  for (std::size_t first = 0; first < order.size(); ++first) {
    if (first + 1 < order.size() && is_ruled_out(2.0 * size(order[first]) * size(order[first + 1])))
      break;
    for (std::size_t second = first + 1; second < order.size(); ++second) {
      const std::int32_t u = std::min(order[first], order[second]);
      const std::int32_t v = std::max(order[first], order[second]);
      if (is_ruled_out(2.0 * size(u) * size(v))) break;
      if (is_ruled_out(bound(u, v)) || has_edge(graph, u, v)) continue;
      ++looked;
      const Candidate candidate{u, v, slope(u, v)};
      if (std::ssize(heap) == count) {
        if (count == 0 || !is_better(candidate, heap.front())) continue;
        std::pop_heap(heap.begin(), heap.end(), is_better);
        heap.pop_back();
      }
      heap.push_back(candidate);
      std::push_heap(heap.begin(), heap.end(), is_better);
    }
  }
  std::sort_heap(heap.begin(), heap.end(), is_better);
  if (looked_at != nullptr) *looked_at = looked;
  return heap;
}

double value_with_edge(const graph::Gso& gso, std::span<const double> degree, std::int64_t source,
                       std::int64_t target, std::int64_t tau, PairDerivative::Candidate edge,
                       double weight, const engine::Executor& executor) {
  const auto matrix = gso.view<double>();
  const double scale_u = std::sqrt(degree[edge.u] / (degree[edge.u] + weight));
  const double scale_v = std::sqrt(degree[edge.v] / (degree[edge.v] + weight));
  const double entry = weight / std::sqrt((degree[edge.u] + weight) * (degree[edge.v] + weight));
  std::vector<double> now(static_cast<std::size_t>(gso.num_nodes()), 0.0), next(now.size());
  now[source] = 1.0;
  for (std::int64_t step = 0; step < tau; ++step) {
    const double at_u = now[edge.u];
    const double at_v = now[edge.v];
    now[edge.u] *= scale_u;
    now[edge.v] *= scale_v;
    engine::spmm(matrix, now.data(), 1, next.data(), executor);
    next[edge.u] = next[edge.u] * scale_u + entry * at_v;
    next[edge.v] = next[edge.v] * scale_v + entry * at_u;
    std::swap(now, next);
  }
  return now[target];
}

std::pair<std::int64_t, std::int64_t> worst_pair(const RewireQuestion& question,
                                                 const graph::Gso& gso,
                                                 const engine::Executor& executor,
                                                 const BlockProgress& progress) {
  const DeepLimit limit(question.graph);
  const auto worst = worst_pairs(gso, question.tau, 1, question.order, &limit, executor, progress);
  if (worst.empty()) throw std::invalid_argument("rewire: expected two nodes that are joined");
  return {worst[0].source, worst[0].target};
}

RewireAnswer answer(const RewireQuestion& question, const engine::Executor& executor,
                    const BlockProgress& progress) {
  const graph::Graph& graph = question.graph;
  const std::string obstacle = why_no_deep_limit(graph);
  if (!obstacle.empty()) throw std::invalid_argument("rewire: " + obstacle);
  const graph::Gso gso = graph::make_gso(graph);
  const std::vector<double> degree = degrees_with_loops(graph);
  RewireAnswer answer{.tau = question.tau,
                      .source = question.source,
                      .target = question.target,
                      .weight = question.weight};
  if (answer.source < 0 || answer.target < 0) {
    std::tie(answer.source, answer.target) = worst_pair(question, gso, executor, progress);
  }
  const PairDerivative derivative(gso, degree, answer.source, answer.target, question.tau,
                                  executor);
  answer.value = derivative.value();
  const std::int64_t n = graph.num_nodes();
  answer.candidates = n * (n - 1) / 2 - (graph.num_edges() - graph.num_self_loops());
  const auto candidates =
      derivative.best(graph, std::max(question.confirm, question.count), &answer.looked_at);
  for (const PairDerivative::Candidate& edge : candidates) {
    answer.edges.push_back({edge.u, edge.v, edge.slope,
                            value_with_edge(gso, degree, answer.source, answer.target, question.tau,
                                            edge, question.weight, executor)});
    ++answer.confirmed;
    if (progress) {
      progress(static_cast<double>(answer.confirmed) / static_cast<double>(candidates.size()));
    }
  }
  std::stable_sort(answer.edges.begin(), answer.edges.end(),
                   [](const AdvisedEdge& a, const AdvisedEdge& b) { return a.value > b.value; });
  answer.edges.resize(std::min<std::size_t>(answer.edges.size(), question.count));
  return answer;
}

std::vector<RewireRound> rewire_in_rounds(const RewireQuestion& question, std::int64_t rounds,
                                          const engine::Executor& executor,
                                          const BlockProgress& progress) {
  std::vector<RewireRound> done;
  RewireQuestion now = question;
  now.count = 1;
  for (std::int64_t round = 0; round < rounds; ++round) {
    const RewireAnswer found = answer(now, executor);
    if (found.edges.empty() || found.edges[0].value <= found.value) break;
    const AdvisedEdge& edge = found.edges[0];
    done.push_back({found.source, found.target, found.value, edge.value, edge.u, edge.v});
    now.graph = edited(now.graph, {.add = {{edge.u, edge.v}}, .weight = question.weight});
    if (progress) progress(static_cast<double>(round + 1) / static_cast<double>(rounds));
  }
  return done;
}

}  // namespace mpssm::analysis
