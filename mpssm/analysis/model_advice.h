// SPDX-License-Identifier: MIT
// Advice about a trained network, as numbers: which edges its loss wants, what a state and a
// prediction are made of, how far they can be moved. report/ makes words, JSON and pages of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mpssm::analysis {

/// What one edge does to a loss.
struct EdgeEffect {
  std::int32_t u = 0;  ///< src of a directed edge
  std::int32_t v = 0;
  double weight = 1.0;
  double slope = 0.0;  ///< dL / d weight, normalisation of the operator included
  /// The loss without this edge alone, by running the network on that graph.
  std::optional<double> loss_without = {};
  double expected_gain() const { return weight * slope; }  ///< to first order, of taking it out
};

struct EdgesAnswer {
  std::string part = {};  ///< of the data, whose loss it is
  double loss = 0.0;
  std::int64_t edges = 0;                           ///< all of them have a slope
  std::int64_t harmful_count = 0;                   ///< of these, with expected_gain() > 0
  std::vector<EdgeEffect> harmful = {};             ///< largest expected gain first
  std::vector<EdgeEffect> useful = {};              ///< largest expected loss first
  std::optional<double> loss_without_harmful = {};  ///< without all that are listed
};

/// A number for each node that adds up to something.
struct NodeShare {
  std::int64_t node = 0;
  std::int32_t hops = 0;  ///< to the target, graph::kUnreachable: no way
  double value = 0.0;
};

/// Shares of the nodes in the state X_i of one block: the state is a sum over the nodes, so these
/// are their Shapley values exactly, for the size of X_i along itself.
struct StateShares {
  std::int64_t block = 1;            ///< counted from 1
  double size = 0.0;                 ///< ||X_i||
  std::vector<double> of_node = {};  ///< [N], they add up to 1; negative: it speaks against
};

/// Integrated gradients of one output: they add up to how it differs from that of the baseline.
struct PathShares {
  std::int64_t output = 0;           ///< column of the prediction
  std::string output_name = {};      ///< class, or empty
  double value = 0.0;                ///< of the output (a logit for classes)
  double baseline = 0.0;             ///< with every node's features at their mean over the nodes
  std::int64_t steps = 0;            ///< points on the way from one to the other
  std::vector<double> of_node = {};  ///< [N]
  double gap = 0.0;                  ///< value - baseline - their sum: error of the quadrature
};

struct Attribution {
  std::int64_t target = 0;
  StateShares state = {};
  PathShares prediction = {};
  std::vector<std::int32_t> hops = {};  ///< [N] to the target
};

/// One block's bound beside what was found.
struct StateBound {
  std::int64_t block = 1;  ///< counted from 1
  double size = 0.0;       ///< ||X_i||
  double bound = 0.0;      ///< on ||dX_i||: no change of that size of the features passes it
  double found = 0.0;      ///< largest ||dX_i|| that a search found
};

struct Robustness {
  std::int64_t target = 0;
  std::vector<std::int64_t> nodes = {};  ///< whose features move
  double epsilon = 0.0;                  ///< each by that much at most, as a Euclidean norm
  std::vector<StateBound> states = {};   ///< of the first block and the last
  /// Of the predicted number, or of the lead of the predicted class over the next; nullopt: the
  /// readout is not a single layer.
  std::optional<double> output_bound = {};
  double output = 0.0;        ///< that number or lead
  double output_found = 0.0;  ///< largest change that was found
  bool of_classes = false;
};

/// Largest first by absolute value.
std::vector<NodeShare> largest_shares(const std::vector<double>& of_node,
                                      const std::vector<std::int32_t>& hops, std::int64_t count);

}  // namespace mpssm::analysis
