// SPDX-License-Identifier: MIT
// How much faster a ReLU GCN loses information than the linear recurrence: the paper's 2^(-k/2),
// measured under the assumptions of its proof, outside them, and on a real network.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "mpssm/graph/gso.h"

namespace mpssm::analysis {

// Sizes that make no sense throw std::invalid_argument. Results depend on the arguments and the
// seed alone. A ratio below one means that the masked or ReLU side lost more.

enum class WeightKind {
  kOrthogonal,  ///< uniform among the orthogonal matrices: masked vectors grow like unmasked ones
  kGaussian,    ///< entries of variance 1 / channels: the same, in the limit of many channels
  kRankOne,     ///< all entries 1 / channels: the counterexample
};

/// "orthogonal", "gaussian", "rank_one".
std::string_view to_string(WeightKind kind);

/// The setting of the proof: root mean square of |P_k W ... P_1 W x| / |W ... W x| over `draws` of
/// a Gaussian x and of masks P whose channels are kept with probability 1/2, all independent. W is
/// the same at every step, and drawn anew for every 64 draws. Cost: 2 k products of a [draws,
/// channels] block with W.
double masked_ratio(WeightKind kind, std::int64_t channels, std::int64_t k, std::int64_t draws,
                    std::uint64_t seed);

/// What the paper predicts for masked_ratio: 2^(-k/2).
double paper_ratio(std::int64_t k);
/// What WeightKind::kRankOne gives in the limit of many channels: 2^(1/2 - k), 1 for k = 0.
double rank_one_ratio(std::int64_t k);

/// Jacobian times one direction, for two networks with the same weights. Both are [nodes,
/// channels], row-major.
struct GcnTangents {
  std::vector<double> relu;    ///< of layers X -> relu(A X W), with relu'(0) = 0
  std::vector<double> linear;  ///< of layers X -> A X W; does not depend on the features
};

/// Jacobians at `features`, in `direction` (both [nodes, channels]); weights are [k, channels,
/// channels], one matrix W per layer, all row-major. Throws std::invalid_argument for other sizes
/// and for numbers that are not finite.
GcnTangents gcn_tangents(const graph::Gso& gso, std::int64_t channels,
                         std::span<const double> weights, std::span<const double> features,
                         std::span<const double> direction);

enum class LayerWeights {
  kFresh,   ///< drawn anew for each layer, as in a GCN
  kShared,  ///< one matrix for all layers, as in the recurrence
};

/// The random networks of gcn_log2_ratio. Weights are Gaussian of variance 1 / channels. He's
/// variance 2 / channels, or any other, gives the same ratios: a factor on the weights does not
/// move the signs that ReLU looks at, and multiplies both Jacobians alike.
struct GcnProbe {
  std::int64_t channels = 64;
  std::int64_t networks = 32;   ///< draws of Gaussian features and weights
  std::int64_t directions = 4;  ///< Gaussian directions for each of them
  LayerWeights weights = LayerWeights::kFresh;
  std::uint64_t seed = 0;
};

/// log2 of |relu| / |linear| for the two tangents of k layers without bias, averaged over networks
/// and directions. The average is one of logarithms: networks differ by factors that grow with k,
/// and a mean square would tell of the luckiest one only. Minus infinity if a network let nothing
/// through (few channels, many layers). Throws std::invalid_argument if gso^k is zero, for 0 / 0
/// is no ratio.
double gcn_log2_ratio(const graph::Gso& gso, std::int64_t k, const GcnProbe& probe = {});

/// gcn_log2_ratio / k, which the paper expects to be -1/2; needs k >= 1.
double gcn_log2_ratio_per_layer(const graph::Gso& gso, std::int64_t k, const GcnProbe& probe = {});

struct VanishingRow {
  std::int64_t k = 0;
  double paper = 0.0;           ///< paper_ratio
  double orthogonal = 0.0;      ///< masked_ratio
  double gaussian = 0.0;        ///< masked_ratio
  double rank_one = 0.0;        ///< masked_ratio
  double rank_one_limit = 0.0;  ///< rank_one_ratio
  double gcn = 0.0;             ///< 2^gcn_log2_ratio, a geometric mean
};

struct VanishingOptions {
  std::int64_t max_k = 16;      ///< rows are k = 1, 2, 4, ... up to this
  std::int64_t channels = 256;  ///< of masked_ratio
  std::int64_t draws = 256;
  std::uint64_t seed = 0;  ///< of masked_ratio; the probe has its own
  GcnProbe gcn = {};
};

/// All of the above for a report, the network running on `gso`.
std::vector<VanishingRow> vanishing_table(const graph::Gso& gso,
                                          const VanishingOptions& options = {});

}  // namespace mpssm::analysis
