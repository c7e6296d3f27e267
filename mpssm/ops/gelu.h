// SPDX-License-Identifier: MIT
// The Gaussian error linear unit without the set-up time of torch's own (which goes through oneDNN
// and takes ten microseconds for two numbers).
#pragma once

#include <ATen/core/Tensor.h>

namespace mpssm::ops {

/// x Phi(x), elementwise; differentiable once. Our kernel for float on the CPU, torch's otherwise.
at::Tensor gelu(const at::Tensor& x);

}  // namespace mpssm::ops
