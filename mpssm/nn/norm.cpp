// SPDX-License-Identifier: MIT
#include "mpssm/nn/norm.h"

#include <stdexcept>
#include <string>

#include <torch/types.h>

#include "mpssm/ops/layer_norm.h"

namespace mpssm::nn {

NormImpl::NormImpl(NormKind kind, std::int64_t channels) {
  if (kind == NormKind::kLayer) {
    scale_ = register_parameter("scale", torch::ones({channels}));
    shift_ = register_parameter("shift", torch::zeros({channels}));
  } else if (kind == NormKind::kBatch) {
    batch_ = register_module("batch", torch::nn::BatchNorm1d(channels));
  }
}

torch::Tensor NormImpl::forward(const torch::Tensor& x) {
  if (scale_.defined()) return ops::layer_norm(x, scale_, shift_);
  if (!batch_.is_empty()) {
    return batch_->forward(x.reshape({-1, x.size(-1)})).view(x.sizes());
  }
  return x;
}

std::string_view to_string(NormKind kind) {
  switch (kind) {
    case NormKind::kNone:
      return "none";
    case NormKind::kLayer:
      return "layer";
    case NormKind::kBatch:
      return "batch";
  }
  return "unknown";
}

NormKind norm_kind_from_name(std::string_view name) {
  for (const NormKind kind : {NormKind::kNone, NormKind::kLayer, NormKind::kBatch}) {
    if (name == to_string(kind)) return kind;
  }
  throw std::invalid_argument("norm_kind_from_name: expected none, layer or batch, got '" +
                              std::string(name) + "'");
}

}  // namespace mpssm::nn
