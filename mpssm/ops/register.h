// SPDX-License-Identifier: MIT
// The operators under their names in torch, for TorchScript and Python (torch.ops.mpssm.*).
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
