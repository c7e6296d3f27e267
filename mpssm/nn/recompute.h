// SPDX-License-Identifier: MIT
// A layer that keeps nothing but its input for the backward pass and runs again there.
#pragma once

#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

namespace mpssm::nn {

using Layer = std::function<at::Tensor(const at::Tensor&)>;

/// layer(x), with gradients in x and `parameters`, all that the layer depends on. The same bits as
/// layer(x), dropout included, for the memory of x and the time of one more forward pass. The layer
/// must not change anything when it runs, since it runs twice: no running statistics.
at::Tensor recompute(const Layer& layer, const at::Tensor& x,
                     const std::vector<at::Tensor>& parameters);

}  // namespace mpssm::nn
