// SPDX-License-Identifier: MIT
#include "mpssm/graph/gso_gradient.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <stdexcept>

namespace mpssm::graph {
namespace {

/// Where entry (i, j) stands in the operator, -1: nowhere.
std::int64_t place_of(const Gso& gso, std::int64_t i, std::int32_t j) {
  const auto begin = gso.col().begin() + gso.row_ptr()[i];
  const auto end = gso.col().begin() + gso.row_ptr()[i + 1];
  const auto found = std::lower_bound(begin, end, j);
  return found != end && *found == j ? found - gso.col().begin() : -1;
}

bool adds_loops(GsoKind kind) {
  return kind == GsoKind::kSymNormalized || kind == GsoKind::kRandomWalk;
}

/// Row sums of |weight|, with the loops that the operator adds.
std::vector<double> degrees_of(const Graph& graph, GsoKind kind) {
  std::vector<double> degree(static_cast<std::size_t>(graph.num_nodes()), 0.0);
  for (std::int64_t i = 0; i < graph.num_nodes(); ++i) {
    bool has_loop = false;
    for (std::int64_t e = graph.row_ptr()[i]; e < graph.row_ptr()[i + 1]; ++e) {
      degree[i] += std::abs(graph.weight()[e]);
      has_loop |= graph.col()[e] == i;
    }
    if (adds_loops(kind) && !has_loop) degree[i] += 1.0;
  }
  return degree;
}

/// What a growing degree takes from each node's row (of a symmetric normalisation: and column).
std::vector<double> losses_of(const Gso& gso, std::span<const double> gradient,
                              std::span<const double> degree) {
  const bool both = gso.kind() != GsoKind::kRandomWalk;
  std::vector<double> loss(degree.size(), 0.0);
  for (std::int64_t i = 0; i < gso.num_nodes(); ++i) {
    for (std::int64_t e = gso.row_ptr()[i]; e < gso.row_ptr()[i + 1]; ++e) {
      const double product = gradient[e] * gso.values<double>()[e];
      loss[i] += product;
      if (both) loss[gso.col()[e]] += product;
    }
  }
  for (std::size_t i = 0; i < loss.size(); ++i) {
    loss[i] = degree[i] > 0.0 ? loss[i] / ((both ? 2.0 : 1.0) * degree[i]) : 0.0;
  }
  return loss;
}

}  // namespace

std::vector<double> weight_gradient(const Graph& graph, const Gso& gso,
                                    std::span<const double> entry_gradient) {
  if (graph.num_nodes() != gso.num_nodes() || std::ssize(entry_gradient) != gso.num_nonzeros()) {
    throw std::invalid_argument(
        fmt::format("weight_gradient: expected {} numbers and {} nodes, got {} and {}",
                    gso.num_nonzeros(), gso.num_nodes(), entry_gradient.size(), graph.num_nodes()));
  }
  const GsoKind kind = gso.kind();
  if (kind == GsoKind::kCustom) {
    throw std::invalid_argument("weight_gradient: a custom operator has no recipe");
  }
  if (kind == GsoKind::kTranspose || kind == GsoKind::kRandomWalkReversed) {
    throw std::invalid_argument(
        fmt::format("weight_gradient: not for operator {}, whose rows are the graph's columns",
                    to_string(kind)));
  }
  std::vector<double> gradient(static_cast<std::size_t>(graph.num_entries()), 0.0);
  if (kind == GsoKind::kIdentity) return gradient;
  const std::vector<double> degree = degrees_of(graph, kind);
  const bool is_normalised = kind != GsoKind::kAdjacency && kind != GsoKind::kLaplacian;
  const std::vector<double> loss =
      is_normalised ? losses_of(gso, entry_gradient, degree) : std::vector<double>();
  for (std::int64_t i = 0; i < graph.num_nodes(); ++i) {
    const std::int64_t on_diagonal =
        kind == GsoKind::kLaplacian ? place_of(gso, i, static_cast<std::int32_t>(i)) : -1;
    for (std::int64_t e = graph.row_ptr()[i]; e < graph.row_ptr()[i + 1]; ++e) {
      const std::int32_t j = graph.col()[e];
      const double sign = graph.weight()[e] < 0.0 ? -1.0 : 1.0;
      const std::int64_t place = place_of(gso, i, j);
      const double own = place < 0 ? 0.0 : entry_gradient[place];
      switch (kind) {
        case GsoKind::kAdjacency:
          gradient[e] = own;
          break;
        case GsoKind::kLaplacian:
          gradient[e] = sign * entry_gradient[on_diagonal] - own;
          break;
        case GsoKind::kRandomWalk:
          gradient[e] = own / degree[i] - sign * loss[i];
          break;
        default: {
          // A node that sends but has a row of zeros gets nothing and gives nothing.
          const double scale = degree[i] * degree[j];
          gradient[e] = (scale > 0.0 ? own / std::sqrt(scale) : 0.0) - sign * loss[i];
        }
      }
    }
  }
  return gradient;
}

}  // namespace mpssm::graph
