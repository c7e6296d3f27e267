// SPDX-License-Identifier: MIT
// Answers to questions about a bare graph, S_ij(tau) = |(A^tau)_ij| |w|^tau, as numbers. report/
// makes words, JSON and pictures of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mpssm/analysis/all_pairs.h"
#include "mpssm/analysis/vanishing.h"
#include "mpssm/analysis/walk.h"
#include "mpssm/graph/bridges.h"

namespace mpssm::analysis {

/// limit -+ lambda*^tau sqrt((1 - q_ii)(1 - q_jj)), times |w|^tau.
struct PairBounds {
  std::vector<double> lower = {};  ///< [taus]
  std::vector<double> upper = {};  ///< [taus]
  bool hold = true;                ///< at every tau
  bool is_certain = true;          ///< else lambda* is an approximation
};

/// Hops until `share` of the limit has arrived.
struct PairDepth {
  double share = 0.0;
  std::int64_t max_tau = 0;
  std::optional<std::int64_t> first = {};      ///< nullopt: not up to max_tau, or never
  std::optional<std::int64_t> sure_from = {};  ///< by lambda*; nullopt: it never says so
};

struct PairAnswer {
  std::int32_t hops = -1;                ///< -1: no way
  std::vector<double> entry = {};        ///< [taus] |(A^tau)_ij|
  std::vector<double> value = {};        ///< [taus] S(tau)
  std::optional<double> limit = {};      ///< of the entry; nullopt: not known
  std::vector<double> limit_value = {};  ///< [taus] limit |w|^tau; empty: not known
  std::optional<PairBounds> bounds = {};
  std::optional<PairDepth> depth = {};
};

/// What one node sends or hears.
struct NodeAnswer {
  std::vector<Reach> profile = {};  ///< [taus] of S
};

/// max over pairs >= rho^tau / N; min over pairs >= least limit - lambda*^tau; times |w|^tau.
struct AllPairsBounds {
  std::vector<double> least = {};    ///< [taus]; empty: not known
  std::vector<double> largest = {};  ///< [taus]
  bool hold = true;
};

struct AllPairsDepth {
  double share = 0.0;
  std::int64_t max_tau = 0;
  std::optional<Depth> found = {};  ///< nullopt: not up to max_tau
};

struct AllPairsAnswer {
  std::vector<Extremes> profile = {};  ///< [taus] of S
  std::optional<AllPairsBounds> bounds = {};
  std::optional<AllPairsDepth> depth = {};
};

struct WorstPair {
  std::int64_t source = -1;
  std::int64_t target = -1;
  std::int32_t hops = -1;                  ///< -1: no way
  double value = 0.0;                      ///< S
  double limit = 0.0;                      ///< if it is known
  double share = 0.0;                      ///< of the limit, if it is known
  std::optional<std::int64_t> depth = {};  ///< if asked for; nullopt: not up to max_tau
  std::vector<graph::Bridge> bridges =
      {};  ///< that everything between the two has to pass, if known
};

struct WorstPairs {
  std::int64_t tau = 0;
  Order order = Order::kValue;
  std::vector<WorstPair> pairs = {};  ///< worst first
  bool knows_limit = false;
  bool knows_bridges = false;              ///< of undirected graphs only
  std::optional<double> depth_share = {};  ///< nullopt: depths were not asked for
  std::int64_t max_tau = 0;                ///< where they gave up
};

struct GraphAnswer {
  // What was asked.
  std::vector<std::int64_t> taus = {};
  double w = 1.0;
  std::string gso = {};
  std::int64_t source = -1;  ///< -1: none
  std::int64_t target = -1;

  // The graph.
  std::int64_t nodes = 0;
  std::int64_t edges = 0;
  bool is_symmetric = true;
  std::int64_t components = 0;
  std::optional<double> lambda_star =
      {};                  ///< of the pair's component or the largest; nullopt: not known
  bool is_certain = true;  ///< else lambda* is an approximation
  std::optional<double> least_limit = {};  ///< over pairs of one component; of all pairs, if known

  // The answer, as far as it was asked for.
  std::optional<PairAnswer> pair = {};
  std::optional<NodeAnswer> node = {};
  std::optional<AllPairsAnswer> all_pairs = {};
  std::optional<WorstPairs> worst = {};
  std::vector<VanishingRow> vanishing = {};

  // For pictures: S after the last tau.
  std::vector<double> map = {};  ///< [N, N] target by source
  std::vector<double> of_node =
      {};  ///< [N] that the target hears or, without one, the source sends
};

}  // namespace mpssm::analysis
