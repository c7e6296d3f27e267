// SPDX-License-Identifier: MIT
// Where (A^tau)_ij ends as tau grows, how far from there it can still be, and what that guarantees.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "mpssm/graph/distances.h"
#include "mpssm/graph/graph.h"
#include "mpssm/graph/gso.h"

namespace mpssm::analysis {

/// For S = D^-1/2 (M + loops) D^-1/2 of an undirected graph without negative weights, on each
/// component with volume vol = sum of its D_l:
///
///   (S^tau)_ij -> q_ij = sqrt(D_i D_j) / vol         (0 across components)
///   |(S^tau)_ij - q_ij| <= lambda*^tau sqrt((1 - q_ii)(1 - q_jj))   for every tau
///
/// where lambda* is the largest |eigenvalue| of the component beside its single 1. Without weights
/// and loops of its own D_i = 1 + d_i, and vol = |V| + 2|E|. Threads may ask one object at once.
class DeepLimit {
 public:
  /// Throws std::invalid_argument naming the condition that fails (see why_no_deep_limit).
  explicit DeepLimit(const graph::Graph& graph);

  /// q_ij. Throws std::out_of_range like everything here if there is no such node.
  double limit(std::int64_t i, std::int64_t j) const;
  /// The bound on |(S^tau)_ij - q_ij|.
  double error_bound(std::int64_t i, std::int64_t j, std::int64_t tau) const;
  /// From this tau on, (S^tau)_ij >= share * q_ij by the bound; nullopt if it never says so
  /// (lambda* as good as 1, or nodes of two components).
  std::optional<std::int64_t> sure_depth(std::int64_t i, std::int64_t j, double share) const;

  /// Of the component of a node. The first call for a component costs an eigenvalue search.
  double lambda_star(std::int64_t node) const;
  /// Largest over all components.
  double lambda_star() const;
  /// False if an eigenvalue search so far ended before its tolerance: lambda* is then the best
  /// approximation, and the bounds are estimates.
  bool is_certain() const;

  double volume(std::int64_t node) const;  ///< of its component
  const graph::Components& components() const { return components_; }
  bool is_connected() const { return components_.count == 1; }

  /// The least q_ij over all pairs of one component (i = j included).
  double least_limit() const;
  /// min_ij (S^tau)_ij >= least_limit() - lambda*^tau for a connected graph of two nodes or more.
  /// The paper's 2 / vol is the least limit of a graph with a leaf, and without the second term it
  /// holds only as tau grows. nullopt: not connected, or one node.
  std::optional<double> minimum_bound(std::int64_t tau) const;

 private:
  double component_lambda_star(std::int32_t component) const;
  graph::Gso component_gso(std::int32_t component) const;
  void check_node(std::int64_t node) const;

  graph::Graph graph_;
  graph::Components components_;
  std::vector<double> degree_;       // D_i
  std::vector<double> volume_;       // of each component
  std::vector<std::int64_t> first_;  // of each component, into node_
  std::vector<std::int32_t> node_;   // sorted by component
  std::vector<std::int64_t> rank_;   // of each node in its component
  // Filled as they are asked for, by one thread at a time; copies share it.
  struct Spectra {
    std::mutex lock;
    std::vector<std::optional<double>> lambda_star;  // of each component
    bool is_certain = true;
  };
  std::shared_ptr<Spectra> spectra_ = std::make_shared<Spectra>();
};

/// D_i: row sums of M after missing loops are added.
std::vector<double> degrees_with_loops(const graph::Graph& graph);

/// Why the limit is not known for this graph, as the end of a sentence; empty if it is.
std::string why_no_deep_limit(const graph::Graph& graph);

/// max_ij |(A^tau)_ij| >= rho(A)^tau / N for any operator, connected or not, symmetric or not: the
/// Frobenius norm is at least the spectral radius and at most N times the largest entry.
double global_bound(double spectral_radius, std::int64_t num_nodes, std::int64_t tau);

}  // namespace mpssm::analysis
