// SPDX-License-Identifier: MIT
// From a dense block to the diagonal block that computes the same function.
#pragma once

#include "mpssm/nn/block.h"

namespace mpssm::nn {

struct Diagonalised {
  Block block{nullptr};
  double condition = 0.0;  ///< cond(V) of the eigenvectors of W: rounding errors grow by up to this
};

/// W = V S V^-1 in double; V goes into B, V^-1 into the first layer of the MLP (or, if a norm
/// stands between, into a linear map before it), and one of each conjugate pair is kept, so that a
/// block of C channels becomes one of between C and 2 C. The result is a free parametrisation:
/// equal now, not under further training. Throws c10::ValueError with the figures if cond(V) times
/// the precision of the block exceeds `tolerance`, or if the block is not dense.
Diagonalised diagonalise(const Block& block, double tolerance = 1e-3);

}  // namespace mpssm::nn
