// SPDX-License-Identifier: MIT
// Layer normalisation of many rows. The gradients of scale and shift are summed in one order.
#pragma once

#include <cstdint>

#include "mpssm/engine/executor.h"
#include "mpssm/engine/row_place.h"

namespace mpssm::engine {

/// y = (x - mean) inverse * scale + shift for each row of x [rows, width]; mean and inverse (1 /
/// standard deviation) [rows] are written by layer_norm() and read by layer_norm_adjoint().
template <typename T>
struct LayerNorm {
  std::int64_t rows = 0;
  std::int64_t width = 0;
  double epsilon = 1e-5;
  const T* x = nullptr;
  const T* scale = nullptr;
  T* mean = nullptr;
  T* inverse = nullptr;
  RowPlace place = {};
};
template <typename T>
void layer_norm(const LayerNorm<T>& args, const T* shift, T* y, const Executor& executor);

/// Writes grad_x [rows, width], grad_scale and grad_shift [width]. `scratch` has room for
/// layer_norm_scratch() numbers.
template <typename T>
void layer_norm_adjoint(const LayerNorm<T>& args, const T* grad, T* grad_x, T* grad_scale,
                        T* grad_shift, T* scratch, const Executor& executor);
std::int64_t layer_norm_scratch(std::int64_t rows, std::int64_t width);

}  // namespace mpssm::engine
