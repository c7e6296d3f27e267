// SPDX-License-Identifier: MIT
// The gradient of a batch, piece by piece: in less memory, or by several ranks.
#pragma once

#include <cstdint>
#include <span>

#include <ATen/core/Generator.h>

#include "mpssm/nn/graph_module.h"
#include "mpssm/ranks/communicator.h"
#include "mpssm/task/problem.h"
#include "mpssm/train/adam.h"

namespace mpssm::train {

/// A batch is cut into `pieces`, neighbours together. Each has a gradient and random numbers of its
/// own, and gradients are added in the order of the pieces: the same bits for any number of ranks,
/// one among them. Ranks beyond the number of pieces only listen.
struct SharedBatch {
  const task::Problem& problem;
  nn::GraphModule& model;
  Adam& adam;
  at::Generator& generator;
  ranks::Communicator& ranks;
  std::int64_t pieces = 1;

  /// Mean loss over the samples; leaves its gradient with the parameters. Called by all ranks.
  double gradient(std::span<const std::int64_t> samples) const;
};

}  // namespace mpssm::train
