// SPDX-License-Identifier: MIT
// From node features to predictions: what all networks end with.
#pragma once

#include <cstdint>
#include <vector>

#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>

#include "mpssm/engine/pool.h"
#include "mpssm/engine/row_place.h"
#include "mpssm/graph/operators.h"
#include "mpssm/nn/activation.h"
#include "mpssm/nn/kinds.h"

namespace mpssm::nn {

struct ReadoutOptions {
  std::int64_t in_channels = 64;
  std::int64_t out_channels = 1;
  bool pools = false;  ///< one output per graph instead of one per node
  engine::Pooling pooling = engine::Pooling::kMean;
  std::int64_t layers = 1;  ///< linear ones
  ReadoutShape shape = ReadoutShape::kHalving;
  Activation activation = Activation::kGelu;  ///< between them
  double dropout = 0.0;                       ///< before each of them, in training
};

/// Pooling if wanted, then linear layers. They are registered with their owner as readout_0, ...
class ReadoutHead {
 public:
  ReadoutHead() = default;
  ReadoutHead(torch::nn::Module& owner, const ReadoutOptions& options);

  /// h [..., N, in] -> [..., N, out], or [N, in] -> [G, out] if it pools. Drops numbers if its
  /// owner is in training.
  torch::Tensor forward(torch::Tensor h, const graph::Operators& gso,
                        engine::RowPlace place = {}) const;
  /// The last layer gives 0 whatever comes in, until it is trained.
  void start_at_zero();

 private:
  ReadoutOptions options_;
  std::vector<torch::nn::Linear> layers_;  // in training as their owner is
};

}  // namespace mpssm::nn
