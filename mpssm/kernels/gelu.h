// SPDX-License-Identifier: MIT
// The Gaussian error linear unit, x Phi(x), and its derivative.
#pragma once

#include <cstdint>

namespace mpssm::kernels {

/// y = x Phi(x) for numbers [begin, end). Phi by Abramowitz and Stegun 7.1.26: absolute error below
/// 2e-7, the precision of a float.
void gelu(const float* x, float* y, std::int64_t begin, std::int64_t end) noexcept;

/// Also the derivative, for less than both alone. `slope` may be x.
void gelu_and_slope(const float* x, float* y, float* slope, std::int64_t begin,
                    std::int64_t end) noexcept;

/// grad_x = grad (Phi(x) + x phi(x)).
void gelu_adjoint(const float* x, const float* grad, float* grad_x, std::int64_t begin,
                  std::int64_t end) noexcept;

}  // namespace mpssm::kernels
