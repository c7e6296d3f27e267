// SPDX-License-Identifier: MIT
// An operator kept by an autograd function for its backward pass.
#pragma once

#include "mpssm/graph/gso.h"

namespace torch::autograd {
struct AutogradContext;
}

namespace mpssm::ops {

void save_pattern(torch::autograd::AutogradContext& context, const graph::Gso& gso);
/// What save_pattern() has kept.
graph::Gso saved_pattern(torch::autograd::AutogradContext& context);

}  // namespace mpssm::ops
