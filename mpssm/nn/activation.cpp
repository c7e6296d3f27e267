// SPDX-License-Identifier: MIT
#include "mpssm/nn/activation.h"

#include <stdexcept>
#include <string>

#include <ATen/ATen.h>

#include "mpssm/ops/gelu.h"

namespace mpssm::nn {

at::Tensor activate(Activation activation, const at::Tensor& x) {
  switch (activation) {
    case Activation::kGelu:
      return ops::gelu(x);
    case Activation::kRelu:
      return at::relu(x);
    case Activation::kTanh:
      return at::tanh(x);
    case Activation::kLeakyRelu:
      return at::leaky_relu(x, 0.01);
    case Activation::kIdentity:
      break;
  }
  return x;
}

std::string_view to_string(Activation activation) {
  switch (activation) {
    case Activation::kGelu:
      return "gelu";
    case Activation::kRelu:
      return "relu";
    case Activation::kTanh:
      return "tanh";
    case Activation::kLeakyRelu:
      return "leaky_relu";
    case Activation::kIdentity:
      return "identity";
  }
  return "unknown";
}

Activation activation_from_name(std::string_view name) {
  for (const Activation activation : {Activation::kGelu, Activation::kRelu, Activation::kTanh,
                                      Activation::kLeakyRelu, Activation::kIdentity}) {
    if (name == to_string(activation)) return activation;
  }
  throw std::invalid_argument(
      "activation_from_name: expected gelu, relu, tanh, leaky_relu or identity, got '" +
      std::string(name) + "'");
}

}  // namespace mpssm::nn
