// SPDX-License-Identifier: MIT
// Layer normalisation whose gradients have the same bits for any number of threads, which torch's
// have not: it adds up the gradients of scale and shift per thread.
#pragma once

#include <ATen/core/Tensor.h>

#include "mpssm/engine/row_place.h"

namespace mpssm::ops {

/// y = (x - mean) / sqrt(variance + epsilon) * scale + shift over the last axis. x: [..., C],
/// contiguous or not; scale, shift: [C]. Differentiable once in all three. Other dtypes and devices
/// than float and double on the CPU go to torch's own.
at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& shift,
                      double epsilon = 1e-5, engine::RowPlace place = {});

}  // namespace mpssm::ops
