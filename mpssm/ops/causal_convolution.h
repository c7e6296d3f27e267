// SPDX-License-Identifier: MIT
// Convolution over time, each channel with a kernel of its own.
#pragma once

#include <ATen/core/Tensor.h>

namespace mpssm::ops {

/// y(t) = sum_(s <= t) kernel(s) x(t - s), channel by channel: x [..., T, N, C], kernel [taps, C].
/// Differentiable once in both; the same bits for any number of threads. float or double on the
/// CPU. Cost: T min(T, taps) N C per sequence.
at::Tensor causal_convolution(const at::Tensor& x, const at::Tensor& kernel);

}  // namespace mpssm::ops
