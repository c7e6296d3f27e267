// SPDX-License-Identifier: MIT
// Which new edge lets a pair of nodes hear each other best: by the exact derivative of A^tau, its
// normalisation included, and confirmed by recomputation.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "mpssm/analysis/all_pairs.h"
#include "mpssm/engine/executor.h"
#include "mpssm/graph/graph.h"
#include "mpssm/graph/gso.h"

namespace mpssm::analysis {

/// How (S^tau)_ij changes with the weight of an edge {u, v} that is not there yet, at weight 0, for
/// S = D^-1/2 (M + loops) D^-1/2 of an undirected graph. With x_a = row i of S^a and y_b = column j
/// of S^b,
///
///   d (S^tau)_ij = sum_(a+b=tau-1) (x_a[u] y_b[v] + x_a[v] y_b[u]) / sqrt(D_u D_v)
///                - sum_(p=u,v) (x_a[p] y_(b+1)[p] + x_(a+1)[p] y_b[p]) / (2 D_p).
///
/// Two walks and O(tau N) memory; then O(tau) for each edge.
class PairDerivative {
 public:
  /// `degree`: degrees_with_loops().
  PairDerivative(const graph::Gso& gso, std::span<const double> degree, std::int64_t source,
                 std::int64_t target, std::int64_t tau, const engine::Executor& executor);

  double value() const { return value_; }  ///< (S^tau)_ij
  double slope(std::int64_t u, std::int64_t v) const;
  /// At least slope(u, v), in O(1): by Cauchy and Schwarz, without the loss to the degrees.
  double bound(std::int64_t u, std::int64_t v) const;

  struct Candidate {
    std::int32_t u = 0;
    std::int32_t v = 0;
    double slope = 0.0;
  };
  /// The `count` edges of largest slope among all that `graph` does not have, largest first. Nodes
  /// are gone through by falling bound, so that most pairs are never looked at: `looked_at` tells.
  std::vector<Candidate> best(const graph::Graph& graph, std::int64_t count,
                              std::int64_t* looked_at = nullptr) const;

 private:
  std::int64_t tau_;
  std::int64_t nodes_;
  std::vector<double> from_target_;      // x_a[p], [N, tau + 1]
  std::vector<double> from_source_;      // y_(tau-1-a)[p] over a, [N, tau]
  std::vector<double> root_;             // 1 / sqrt(D_p)
  std::vector<double> loss_;             // to the degree of p
  std::vector<double> size_x_, size_y_;  // norms over a, with the root of D_p
  double value_ = 0.0;
};

/// (S'^tau)_ij of the graph with the edge {u, v} of that weight added, by a walk on S itself: S' is
/// S with two rows and columns rescaled and one entry more.
double value_with_edge(const graph::Gso& gso, std::span<const double> degree, std::int64_t source,
                       std::int64_t target, std::int64_t tau, PairDerivative::Candidate edge,
                       double weight, const engine::Executor& executor);

struct RewireQuestion {
  graph::Graph graph = {};  ///< undirected, no negative weights
  std::int64_t tau = 0;
  std::int64_t source = -1;  ///< both -1: the worst pair at tau
  std::int64_t target = -1;
  Order order = Order::kValue;  ///< by which the worst pair is the worst
  std::int64_t count = 5;
  double weight = 1.0;        ///< of new edges
  std::int64_t confirm = 64;  ///< so many of the largest slopes are recomputed, `count` at least
};

struct AdvisedEdge {
  std::int32_t u = 0;
  std::int32_t v = 0;
  double slope = 0.0;  ///< derivative at weight 0
  double value = 0.0;  ///< (S^tau)_ij with this edge alone, recomputed
};

struct RewireAnswer {
  std::int64_t tau = 0;
  std::int64_t source = -1;
  std::int64_t target = -1;
  double value = 0.0;  ///< (S^tau)_ij as the graph is
  double weight = 1.0;
  std::vector<AdvisedEdge> edges = {};  ///< by value, largest first
  std::int64_t candidates = 0;          ///< pairs that are no edge
  std::int64_t looked_at = 0;           ///< of these, not ruled out by the bound
  std::int64_t confirmed = 0;           ///< recomputed
};

/// The pair that a question without one is about. Throws std::invalid_argument if no two nodes are
/// joined.
std::pair<std::int64_t, std::int64_t> worst_pair(const RewireQuestion& question,
                                                 const graph::Gso& gso,
                                                 const engine::Executor& executor,
                                                 const BlockProgress& progress = {});

/// One edge after the other: each is the best for the pair that is worst by then.
struct RewireRound {
  std::int64_t source = -1;  ///< that pair
  std::int64_t target = -1;
  double before = 0.0;  ///< its (S^tau)_ij, with the edges of the rounds before
  double after = 0.0;   ///< with this one, too
  std::int32_t u = 0;
  std::int32_t v = 0;
};

/// Throws std::invalid_argument for graphs that the derivative does not hold for (directed,
/// negative weights), or if there is no pair of two nodes that are joined.
RewireAnswer answer(const RewireQuestion& question, const engine::Executor& executor,
                    const BlockProgress& progress = {});

/// So many edges, each for the pair that is worst once the others are there (or for the one given,
/// every time). Ends early when no edge helps.
std::vector<RewireRound> rewire_in_rounds(const RewireQuestion& question, std::int64_t rounds,
                                          const engine::Executor& executor,
                                          const BlockProgress& progress = {});

}  // namespace mpssm::analysis
