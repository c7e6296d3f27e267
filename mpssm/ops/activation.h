// SPDX-License-Identifier: MIT
// The engine's nonlinearities on tensors.
#pragma once

#include <ATen/core/Tensor.h>

#include "mpssm/engine/activation.h"

namespace mpssm::ops {

/// f(x), elementwise; differentiable.
at::Tensor activate(engine::Activation activation, const at::Tensor& x);

}  // namespace mpssm::ops
