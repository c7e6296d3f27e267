// SPDX-License-Identifier: MIT
#include "mpssm/analysis/graph_edit.h"

#include <algorithm>
#include <fmt/core.h>
#include <set>

#include "mpssm/base/error.h"

namespace mpssm::analysis {
namespace {

using CsrMatrix = kernels::CsrView<double>;

/// Nodes within `hops` of `starts`: of operators, those that their states depend on; of transposed
/// ones, those that they reach.
std::vector<std::int32_t> ball(const std::vector<CsrMatrix>& views,
                               std::span<const std::int32_t> starts, std::int64_t hops) {
  std::vector<bool> seen(static_cast<std::size_t>(views.front().num_rows), false);
  std::vector<std::int32_t> nodes;
  for (const std::int32_t start : starts) {
    if (seen[start]) continue;
    seen[start] = true;
    nodes.push_back(start);
  }
  std::size_t circle = 0;
  for (std::int64_t hop = 0; hop < hops; ++hop) {
    const std::size_t end = nodes.size();
    for (; circle < end; ++circle) {
      for (const CsrMatrix& view : views) {
        for (std::int64_t e = view.row_ptr[nodes[circle]]; e < view.row_ptr[nodes[circle] + 1];
             ++e) {
          if (seen[view.col[e]]) continue;
          seen[view.col[e]] = true;
          nodes.push_back(view.col[e]);
        }
      }
    }
    if (nodes.size() == end) break;
  }
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}

/// A state on some nodes only.
class LocalState {
 public:
  LocalState(std::int64_t num_nodes, const std::vector<std::int32_t>& nodes, std::int64_t channels)
      : channels_(channels),
        rank_(static_cast<std::size_t>(num_nodes), -1),
        values_(nodes.size() * static_cast<std::size_t>(channels), 0.0) {
    for (std::size_t n = 0; n < nodes.size(); ++n) rank_[nodes[n]] = static_cast<std::int32_t>(n);
  }
  /// Null for a node that it does not hold.
  double* row(std::int32_t node) {
    return rank_[node] < 0 ? nullptr : values_.data() + rank_[node] * channels_;
  }
  const double* row(std::int32_t node) const { return const_cast<LocalState*>(this)->row(node); }
  void clear() { std::fill(values_.begin(), values_.end(), 0.0); }

 private:
  std::int64_t channels_;
  std::vector<std::int32_t> rank_;
  std::vector<double> values_;
};

class Propagation {
 public:
  explicit Propagation(const StateProblem& problem) : problem_(problem) {}

  /// row i of (scale A) times state, added to `out`.
  void add_product(const CsrMatrix& matrix, std::int32_t i, const LocalState& state, double scale,
                   double* out) {
    for (std::int64_t e = matrix.row_ptr[i]; e < matrix.row_ptr[i + 1]; ++e) {
      const double* from = state.row(matrix.col[e]);
      if (from == nullptr) continue;  // outside: too far away to matter, or zero
      const double entry = scale * matrix.value[e];
      for (std::int64_t c = 0; c < problem_.channels; ++c) out[c] += entry * from[c];
      ++products_;
    }
  }
  /// x <- x W
  void mix(double* x) {
    if (problem_.w.empty()) return;
    std::vector<double> mixed(static_cast<std::size_t>(problem_.channels), 0.0);
    for (std::int64_t k = 0; k < problem_.channels; ++k) {
      for (std::int64_t c = 0; c < problem_.channels; ++c) {
        mixed[c] += x[k] * problem_.w[k * problem_.channels + c];
      }
    }
    std::copy(mixed.begin(), mixed.end(), x);
  }
  std::int64_t products() const { return products_; }

 private:
  const StateProblem& problem_;
  std::int64_t products_ = 0;
};

}  // namespace

bool has_edge(const graph::Graph& graph, std::int64_t i, std::int64_t j) {
  const auto columns =
      graph.col().subspan(static_cast<std::size_t>(graph.row_ptr()[i]),
                          static_cast<std::size_t>(graph.row_ptr()[i + 1] - graph.row_ptr()[i]));
  return std::binary_search(columns.begin(), columns.end(), static_cast<std::int32_t>(j));
}

graph::Graph edited(const graph::Graph& graph, const GraphEdit& edit) {
  const bool is_directed = !graph.is_symmetric();
  const auto ordered = [&](GraphEdit::Edge edge) {
    return is_directed || edge.first <= edge.second ? edge
                                                    : GraphEdit::Edge{edge.second, edge.first};
  };
  std::set<GraphEdit::Edge> gone;
  for (const auto& edge : edit.remove) gone.insert(ordered(edge));
  graph::EdgeList edges{.num_nodes = graph.num_nodes()};
  std::set<GraphEdit::Edge> there;  // of those that are to be added
  for (const auto& edge : edit.add) there.insert(ordered(edge));
  const auto refuse = [](const char* what, const GraphEdit::Edge& edge, const char* why) {
    throw base::Error(fmt::format("edge {},{} to {}: {}", edge.first, edge.second, what, why));
  };
  for (const auto* list : {&edit.remove, &edit.add}) {
    for (const auto& edge : *list) {
      const auto is_node = [&](std::int32_t i) { return i >= 0 && i < graph.num_nodes(); };
      if (!is_node(edge.first) || !is_node(edge.second)) {
        refuse(list == &edit.add ? "add" : "remove", edge, "no such node");
      }
    }
  }
  std::set<GraphEdit::Edge> removed;
  for (std::int64_t i = 0; i < graph.num_nodes(); ++i) {
    for (std::int64_t e = graph.row_ptr()[i]; e < graph.row_ptr()[i + 1]; ++e) {
      const std::int32_t j = graph.col()[e];
      if (!is_directed && j > i) continue;
      const GraphEdit::Edge edge = ordered({j, static_cast<std::int32_t>(i)});
      if (gone.contains(edge)) {
        removed.insert(edge);
        continue;
      }
      if (there.contains(edge)) refuse("add", edge, "it is there already");
      edges.src.push_back(j);
      edges.dst.push_back(i);
      edges.weight.push_back(graph.weight()[e]);
    }
  }
  for (const auto& edge : gone) {
    if (!removed.contains(edge)) refuse("remove", edge, "there is none");
  }
  for (const auto& edge : there) {
    edges.src.push_back(edge.first);
    edges.dst.push_back(edge.second);
    edges.weight.push_back(edit.weight);
  }
  return graph::Graph::from_edges(
      edges, is_directed ? graph::Direction::kDirected : graph::Direction::kUndirected);
}

std::vector<std::int32_t> touched_nodes(const GraphEdit& edit) {
  std::set<std::int32_t> nodes;
  for (const auto* list : {&edit.remove, &edit.add}) {
    for (const auto& [u, v] : *list) nodes.insert({u, v});
  }
  return {nodes.begin(), nodes.end()};
}

StateChange changed_states(const StateProblem& problem) {
  const CsrMatrix before = problem.before.view<double>();
  const CsrMatrix after = problem.after.view<double>();
  // Rows that differ: those of the touched nodes, and of whoever hears them.
  const std::vector<CsrMatrix> hearers = {problem.before.transpose_view<double>(),
                                          problem.after.transpose_view<double>()};
  const std::vector<std::int32_t> differing = ball(hearers, problem.touched, 1);
  const std::vector<std::int32_t> reached =
      ball(hearers, differing, std::max<std::int64_t>(problem.steps - 1, 0));
  // The states before that these rows and the answer are made of.
  const std::vector<std::int32_t> needed = ball({before, after}, reached, problem.steps);

  const std::int64_t nodes = before.num_rows;
  Propagation propagation(problem);
  LocalState x(nodes, needed, problem.channels), next_x(nodes, needed, problem.channels);
  LocalState d(nodes, reached, problem.channels), next_d(nodes, reached, problem.channels);
  const auto add_input = [&](std::int32_t node, double* row) {
    for (std::int64_t c = 0; c < problem.channels; ++c) {
      row[c] += problem.input[node * problem.channels + c];
    }
  };
  for (const std::int32_t node : needed) add_input(node, x.row(node));
  // D moves one hop a step: rows beyond are zero and need not be looked at.
  std::vector<std::int32_t> front = differing;
  for (std::int64_t step = 0; step < problem.steps; ++step) {
    next_x.clear();
    next_d.clear();
    for (const std::int32_t i : front) {
      double* row = next_d.row(i);
      propagation.add_product(after, i, d, 1.0, row);
      if (std::binary_search(differing.begin(), differing.end(), i)) {
        propagation.add_product(after, i, x, 1.0, row);
        propagation.add_product(before, i, x, -1.0, row);
      }
      propagation.mix(row);
    }
    for (const std::int32_t i : needed) {
      propagation.add_product(before, i, x, 1.0, next_x.row(i));
      propagation.mix(next_x.row(i));
      if (problem.repeats_input) add_input(i, next_x.row(i));
    }
    std::swap(x, next_x);
    std::swap(d, next_d);
    if (step + 1 < problem.steps) front = ball(hearers, front, 1);
  }
  StateChange change{.nodes = reached, .products = propagation.products()};
  for (const std::int32_t node : reached) {
    for (std::int64_t c = 0; c < problem.channels; ++c) {
      change.before.push_back(x.row(node)[c]);
      change.after.push_back(x.row(node)[c] + d.row(node)[c]);
    }
  }
  return change;
}

}  // namespace mpssm::analysis
