// SPDX-License-Identifier: MIT
// Dense layers on our own matrix product: many rows, few channels, the same bits for any number of
// threads whatever BLAS libtorch was built with.
#pragma once

#include <ATen/core/Tensor.h>

namespace mpssm::ops {

/// x W + bias for x [..., in], weight [out, in] (as torch::nn::Linear keeps it: W = weight'), bias
/// [out] or undefined. Differentiable once in all three. float and double on the CPU, torch's
/// otherwise.
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

}  // namespace mpssm::ops
