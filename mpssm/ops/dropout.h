// SPDX-License-Identifier: MIT
// Dropout whose mask is a function of a seed: made again in the backward pass, never stored.
#pragma once

#include <ATen/core/Tensor.h>

namespace mpssm::ops {

/// x with each number set to 0 with the given probability and the others divided by what is left.
/// Takes one number from torch's default CPU generator per call and gives the same bits for any
/// number of threads. Differentiable in x, once. probability in [0, 1); 0 returns x itself.
at::Tensor dropout(const at::Tensor& x, double probability);

}  // namespace mpssm::ops
