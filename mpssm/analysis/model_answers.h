// SPDX-License-Identifier: MIT
// Answers to questions about a trained network, as numbers. report/ makes words, JSON and pictures
// of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mpssm::analysis {

/// The W of one block.
struct BlockAnswer {
  std::string gso = {};       ///< of a group: the kind of its operator
  std::int64_t channels = 0;  ///< of a group
  std::int64_t hops = 0;      ///< that the block makes
  double radius = 0.0;
  double norm_at_hops = 0.0;        ///< ||W^hops||
  double mean_hop = 0.0;            ///< see StateReach
  std::int64_t forgets_after = -1;  ///< hops, see StateReach; -1: never
  std::vector<double> norms = {};   ///< [taus] ||W^tau||
  /// Of channels with operators of their own; empty: there is one for all. Channels of two groups
  /// do not meet inside a block, so that its norms are the largest of theirs.
  std::vector<BlockAnswer> groups = {};
};

/// What a block takes from how far, see block_hops() in multi_hop.h.
struct BlockHops {
  std::vector<double> weight_norm = {};  ///< [hops + 1] ||B W^i||
  std::vector<double> by_walk = {};      ///< [hops + 1] what comes by walks of i hops
  std::vector<double> by_distance = {};  ///< what comes from the nodes at d hops
  std::vector<double> nodes_at = {};     ///< how many these are, on average
};

/// From the features of one node to the prediction of another.
struct EndToEnd {
  double spectral_norm = 0.0;  ///< of the Jacobian
  double l1 = 0.0;
  std::int64_t outputs = 0;
  std::int64_t inputs = 0;
};

struct ModelPairAnswer {
  EndToEnd end_to_end = {};
  // Inside one block, from state to state.
  std::int64_t block = 1;          ///< counted from 1
  std::vector<double> value = {};  ///< [taus] S(tau); empty: there are no blocks
  /// [groups][taus] |(A_g^tau)_ij| ||W_g^tau||, of which S(tau) is the largest; empty: no groups.
  std::vector<std::vector<double>> of_group = {};
  std::optional<double> limit = {};        ///< of |(A^tau)_ij|
  std::optional<double> lambda_star = {};  ///< if asked for
};

/// What a prediction depends on, for a target that is a node. I(j): see influence_of_nodes().
struct Influence {
  std::vector<double> of_node = {};         ///< [N] I(j)
  std::vector<std::int32_t> hops = {};      ///< [N] from j to the target, graph::kUnreachable: none
  std::vector<double> of_hop = {};          ///< sum of I(j) over the nodes at each distance
  std::vector<std::int64_t> nodes_at = {};  ///< how many these are
  /// Sum of h of_hop[h] over the sum of of_hop: the influence-weighted receptive field.
  double mean_hop = 0.0;
};

struct Prediction {
  std::int64_t target = 0;
  Influence influence = {};
  std::vector<std::int64_t> top = {};  ///< the most influential nodes, largest first
};

/// Some predictions of one network.
struct Dependence {
  std::string run = {};
  std::vector<Prediction> predictions = {};
  std::vector<double> share_of_hop = {};  ///< mean over the predictions of of_hop / its sum
  double mean_hop = 0.0;                  ///< mean over the predictions
};

/// The one prediction for a whole graph: there is no distance to it.
struct GraphPrediction {
  std::vector<double> of_node = {};    ///< [N] I(j)
  std::vector<std::int64_t> top = {};  ///< the most influential nodes, largest first
};

struct ModelAnswer {
  std::vector<BlockHops> multi_hop = {};  ///< [blocks], if asked for
  // What was asked.
  std::string run = {};
  std::string dataset = {};
  std::string kind = {};  ///< of the network
  std::vector<std::int64_t> taus = {};
  bool asked_for_taus = false;  ///< else they are the usual ones
  std::int64_t source = -1;     ///< -1: none
  std::int64_t target = -1;
  std::int64_t nodes = 0;

  std::vector<BlockAnswer> blocks = {};  ///< empty: no linear recurrence
  // The rest as far as it was asked for.
  std::optional<ModelPairAnswer> pair = {};
  std::vector<Dependence> runs = {};  ///< this one, and the one to compare with; the same targets
  std::optional<GraphPrediction> whole = {};

  bool predicts_graphs() const { return whole.has_value(); }
};

}  // namespace mpssm::analysis
