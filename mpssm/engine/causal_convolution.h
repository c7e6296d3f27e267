// SPDX-License-Identifier: MIT
// Convolution over time, each channel with a kernel of its own: what a linear state-space model
// does to a sequence when its kernel is known.
#pragma once

#include <cstdint>

#include "mpssm/engine/executor.h"

namespace mpssm::engine {

/// y(b, t, n, c) = sum_(s <= t, s < taps) kernel(s, c) x(b, t - s, n, c); nothing comes before t =
/// 0.
template <typename T>
struct CausalConvolution {
  std::int64_t batch = 1;
  std::int64_t steps = 1;
  std::int64_t nodes = 1;
  std::int64_t width = 1;
  std::int64_t taps = 1;
  const T* x = nullptr;       // [batch, steps, nodes, width]
  const T* kernel = nullptr;  // [taps, width]
};

template <typename T>
void causal_convolution(const CausalConvolution<T>& args, T* y, const Executor& executor);

/// From the gradient of y those of x and of the kernel. The sum over batch and nodes is cut into
/// parts that do not depend on the workers; `scratch` has room for them.
template <typename T>
void causal_convolution_adjoint(const CausalConvolution<T>& args, const T* grad, T* grad_x,
                                T* grad_kernel, T* scratch, const Executor& executor);
template <typename T>
std::int64_t causal_convolution_scratch(const CausalConvolution<T>& args);

}  // namespace mpssm::engine
