// SPDX-License-Identifier: MIT
#include "mpssm/nn/baselines/graph_attention.h"

#include <cmath>
#include <vector>

#include <torch/nn/init.h>
#include <torch/types.h>

#include "mpssm/ops/attention.h"
#include "mpssm/ops/linear.h"

namespace mpssm::nn {

GraphAttentionImpl::GraphAttentionImpl(std::int64_t channels, std::int64_t heads) : heads_(heads) {
  TORCH_CHECK_VALUE(heads >= 1 && channels % heads == 0,
                    "GraphAttention: expected heads that share ", channels,
                    " channels evenly, got ", heads);
  map_ = register_module(
      "map", torch::nn::Linear(torch::nn::LinearOptions(channels, channels).bias(false)));
  const double bound = std::sqrt(static_cast<double>(heads) / static_cast<double>(channels));
  const auto vector_of_each = [&](const char* name) {
    torch::Tensor vectors = register_parameter(name, torch::empty({heads, channels / heads}));
    torch::nn::init::uniform_(vectors, -bound, bound);
    return vectors;
  };
  to_ = vector_of_each("to");
  from_ = vector_of_each("from");
  bias_ = register_parameter("bias", torch::zeros({channels}));
}

torch::Tensor GraphAttentionImpl::forward(const torch::Tensor& h, const graph::Gso& gso) {
  // h W p as h (W p): one product with a few columns.
  const std::int64_t width = map_->weight.size(0) / heads_;
  const auto scores = [&](const torch::Tensor& vectors) {
    std::vector<torch::Tensor> rows;
    for (std::int64_t head = 0; head < heads_; ++head) {
      rows.push_back(ops::matmul(vectors.slice(0, head, head + 1),
                                 map_->weight.slice(0, head * width, (head + 1) * width)));
    }
    return ops::linear(h, torch::cat(rows), {});
  };
  const torch::Tensor moved =
      ops::attention(gso, ops::linear(h, map_->weight, {}), scores(to_), scores(from_));
  return moved + ops::matmul(torch::ones({h.size(0), 1}, h.options()), bias_.unsqueeze(0));
}

}  // namespace mpssm::nn
