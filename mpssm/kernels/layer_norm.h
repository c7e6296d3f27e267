// SPDX-License-Identifier: MIT
// Layer normalisation of rows, forward and backward.
#pragma once

#include <cstdint>

namespace mpssm::kernels {

/// Rows of `width` contiguous numbers. `mean` and `inverse` (1 / standard deviation) are kept per
/// row for the backward pass.
template <typename T>
struct LayerNormArgs {
  std::int64_t width = 0;
  double epsilon = 1e-5;
  const T* x = nullptr;
  const T* scale = nullptr;
  T* mean = nullptr;
  T* inverse = nullptr;
};

void layer_norm(const LayerNormArgs<float>& args, const float* shift, float* y,
                std::int64_t row_begin, std::int64_t row_end) noexcept;
void layer_norm(const LayerNormArgs<double>& args, const double* shift, double* y,
                std::int64_t row_begin, std::int64_t row_end) noexcept;

/// grad_x of rows [row_begin, row_end); adds those rows' part to grad_scale and grad_shift [width].
void layer_norm_adjoint(const LayerNormArgs<float>& args, const float* grad, float* grad_x,
                        float* grad_scale, float* grad_shift, std::int64_t row_begin,
                        std::int64_t row_end) noexcept;
void layer_norm_adjoint(const LayerNormArgs<double>& args, const double* grad, double* grad_x,
                        double* grad_scale, double* grad_shift, std::int64_t row_begin,
                        std::int64_t row_end) noexcept;

}  // namespace mpssm::kernels
