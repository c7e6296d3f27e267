// SPDX-License-Identifier: MIT
// The orthogonal start of a dense W, with the same bits for any number of threads: LAPACK's QR,
// which torch::nn::init::orthogonal_ goes through, has not.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace mpssm::nn {

/// Fills the square real matrix `weight` with scale * Q, Q uniform among orthogonal matrices: the
/// Q = M R^-1 of a random normal M and an R with a positive diagonal, as torch's. Draws n^2 numbers
/// from torch's default generator. In double, on one thread: 4 n^3 multiply-adds.
void fill_orthogonal(at::Tensor& weight, double scale);

}  // namespace mpssm::nn
