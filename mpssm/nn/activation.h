// SPDX-License-Identifier: MIT
// Elementwise nonlinearities by name.
#pragma once

#include <string_view>

#include <ATen/core/Tensor.h>

namespace mpssm::nn {

enum class Activation { kGelu, kRelu, kTanh, kLeakyRelu, kIdentity };

/// kLeakyRelu has slope 0.01 on the negative side.
at::Tensor activate(Activation activation, const at::Tensor& x);

std::string_view to_string(Activation activation);
/// Throws std::invalid_argument listing the names: gelu, relu, tanh, leaky_relu, identity.
Activation activation_from_name(std::string_view name);

}  // namespace mpssm::nn
