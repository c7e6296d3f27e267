// SPDX-License-Identifier: MIT
// The operators under their names in torch, for TorchScript and Python (torch.ops.mpssm.*).
// Internal to ops/: others reach them through torch's dispatcher.
#pragma once

#include <torch/custom_class.h>

#include "mpssm/graph/gso.h"

namespace mpssm::ops {

/// torch.classes.mpssm.Gso: a graph shift operator as a value that torch can pass around.
struct GsoHandle : torch::CustomClassHolder {
  explicit GsoHandle(graph::Gso gso_in) : gso(std::move(gso_in)) {}
  graph::Gso gso;
};

}  // namespace mpssm::ops
