// SPDX-License-Identifier: MIT
#include "mpssm/ops/activation.h"

#include <ATen/ATen.h>

#include "mpssm/ops/gelu.h"

namespace mpssm::ops {

at::Tensor activate(engine::Activation activation, const at::Tensor& x) {
  using engine::Activation;
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

}  // namespace mpssm::ops
