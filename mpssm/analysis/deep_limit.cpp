// SPDX-License-Identifier: MIT
#include "mpssm/analysis/deep_limit.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "mpssm/graph/spectrum.h"

namespace mpssm::analysis {

std::vector<double> degrees_with_loops(const graph::Graph& graph) {
  std::vector<double> degree(static_cast<std::size_t>(graph.num_nodes()));
  for (std::int64_t i = 0; i < graph.num_nodes(); ++i) {
    bool has_loop = false;
    for (std::int64_t e = graph.row_ptr()[i]; e < graph.row_ptr()[i + 1]; ++e) {
      degree[i] += graph.weight()[e];
      has_loop = has_loop || graph.col()[e] == i;
    }
    if (!has_loop) degree[i] += 1.0;
  }
  return degree;
}

std::string why_no_deep_limit(const graph::Graph& graph) {
  if (graph.num_nodes() == 0) return "the graph has no node";
  if (!graph.is_symmetric()) return "the graph is directed";
  const auto weight = graph.weight();
  if (std::any_of(weight.begin(), weight.end(), [](double w) { return w < 0.0; })) {
    return "the graph has negative weights";
  }
  // A loop of its own may weigh nothing: then the node keeps nothing of itself.
  for (std::int64_t i = 0; i < graph.num_nodes(); ++i) {
    for (std::int64_t e = graph.row_ptr()[i]; e < graph.row_ptr()[i + 1]; ++e) {
      if (weight[e] == 0.0) return "the graph has edges of weight 0";
    }
  }
  return {};
}

DeepLimit::DeepLimit(const graph::Graph& graph) {
  if (const std::string why = why_no_deep_limit(graph); !why.empty()) {
    throw std::invalid_argument("deep limit: " + why);
  }
  graph_ = graph;
  components_ = graph::components(graph);
  degree_ = degrees_with_loops(graph);
  volume_.resize(static_cast<std::size_t>(components_.count));
  spectra_->lambda_star.resize(volume_.size());
  first_.assign(volume_.size() + 1, 0);
  rank_.resize(degree_.size());
  for (std::size_t i = 0; i < degree_.size(); ++i) {
    const std::int32_t c = components_.of_node[i];
    volume_[c] += degree_[i];
    rank_[i] = first_[c + 1]++;
  }
  std::partial_sum(first_.begin(), first_.end(), first_.begin());
  node_.resize(degree_.size());
  for (std::size_t i = 0; i < degree_.size(); ++i) {
    node_[first_[components_.of_node[i]] + rank_[i]] = static_cast<std::int32_t>(i);
  }
}

void DeepLimit::check_node(std::int64_t node) const {
  if (node >= 0 && node < std::ssize(degree_)) return;
  throw std::out_of_range(fmt::format("deep limit: expected a node from 0 to {}, got {}",
                                      std::ssize(degree_) - 1, node));
}

double DeepLimit::volume(std::int64_t node) const {
  check_node(node);
  return volume_[components_.of_node[node]];
}

double DeepLimit::limit(std::int64_t i, std::int64_t j) const {
  check_node(i);
  check_node(j);
  if (components_.of_node[i] != components_.of_node[j]) return 0.0;
  return std::sqrt(degree_[i] * degree_[j]) / volume(i);
}

double DeepLimit::error_bound(std::int64_t i, std::int64_t j, std::int64_t tau) const {
  check_node(i);
  check_node(j);
  if (components_.of_node[i] != components_.of_node[j]) return 0.0;
  const double others = (1.0 - limit(i, i)) * (1.0 - limit(j, j));
  return std::pow(lambda_star(i), static_cast<double>(tau)) * std::sqrt(std::max(others, 0.0));
}

std::optional<std::int64_t> DeepLimit::sure_depth(std::int64_t i, std::int64_t j,
                                                  double share) const {
  const double allowed = (1.0 - share) * limit(i, j);
  if (!(allowed > 0.0)) return {};
  const double start = error_bound(i, j, 0);
  if (start <= allowed) return 0;
  const double rate = lambda_star(i);
  if (rate >= 1.0) return {};
  if (rate <= 0.0) return 1;
  const double depth = std::ceil(std::log(allowed / start) / std::log(rate));
  if (depth > 1e15) return {};
  return static_cast<std::int64_t>(depth);
}

graph::Gso DeepLimit::component_gso(std::int32_t component) const {
  if (is_connected()) return graph::make_gso(graph_);
  graph::EdgeList edges{.num_nodes = first_[component + 1] - first_[component]};
  for (std::int64_t n = first_[component]; n < first_[component + 1]; ++n) {
    const std::int32_t i = node_[n];
    for (std::int64_t e = graph_.row_ptr()[i]; e < graph_.row_ptr()[i + 1]; ++e) {
      edges.src.push_back(rank_[graph_.col()[e]]);
      edges.dst.push_back(rank_[i]);
      edges.weight.push_back(graph_.weight()[e]);
    }
  }
  return graph::make_gso(graph::Graph::from_edges(edges, graph::Direction::kDirected));
}

double DeepLimit::component_lambda_star(std::int32_t component) const {
  const std::lock_guard<std::mutex> guard(spectra_->lock);
  std::optional<double>& known = spectra_->lambda_star[component];
  if (!known) {
    const graph::SpectrumExtremes extremes = graph::spectrum_extremes(component_gso(component));
    known = extremes.lambda_star;
    spectra_->is_certain = spectra_->is_certain && extremes.converged;
  }
  return *known;
}

bool DeepLimit::is_certain() const {
  const std::lock_guard<std::mutex> guard(spectra_->lock);
  return spectra_->is_certain;
}

double DeepLimit::lambda_star(std::int64_t node) const {
  check_node(node);
  return component_lambda_star(components_.of_node[node]);
}

double DeepLimit::lambda_star() const {
  double largest = 0.0;
  for (std::int32_t c = 0; c < components_.count; ++c) {
    largest = std::max(largest, component_lambda_star(c));
  }
  return largest;
}

double DeepLimit::least_limit() const {
  std::vector<double> least(volume_.size(), std::numeric_limits<double>::infinity());
  for (std::size_t i = 0; i < degree_.size(); ++i) {
    double& degree = least[components_.of_node[i]];
    degree = std::min(degree, degree_[i]);
  }
  for (std::size_t c = 0; c < least.size(); ++c) least[c] /= volume_[c];
  return *std::min_element(least.begin(), least.end());
}

std::optional<double> DeepLimit::minimum_bound(std::int64_t tau) const {
  if (!is_connected() || degree_.size() < 2) return {};
  return least_limit() - std::pow(lambda_star(), static_cast<double>(tau));
}

double global_bound(double spectral_radius, std::int64_t num_nodes, std::int64_t tau) {
  return std::pow(spectral_radius, static_cast<double>(tau)) / static_cast<double>(num_nodes);
}

}  // namespace mpssm::analysis
