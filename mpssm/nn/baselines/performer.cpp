// SPDX-License-Identifier: MIT
#include "mpssm/nn/baselines/performer.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <torch/types.h>

#include "mpssm/nn/orthogonal.h"
#include "mpssm/ops/linear.h"

namespace mpssm::nn {
namespace {

/// Rows of orthogonal blocks, as long as Gaussian rows are.
torch::Tensor orthogonal_gaussian(std::int64_t rows, std::int64_t columns) {
  std::vector<torch::Tensor> blocks;
  for (std::int64_t row = 0; row < rows; row += columns) {
    const torch::Tensor length = torch::randn({columns, columns}).square().sum(1, true).sqrt();
    torch::Tensor block = torch::empty({columns, columns});
    fill_orthogonal(block, /*scale=*/1.0);
    blocks.push_back(block * length);
  }
  return torch::cat(blocks).slice(0, 0, rows).contiguous();
}

}  // namespace

PerformerImpl::PerformerImpl(std::int64_t channels, std::int64_t heads) : heads_(heads) {
  TORCH_CHECK_VALUE(heads >= 1 && channels % heads == 0, "Performer: expected heads that share ",
                    channels, " channels evenly, got ", heads);
  const auto map = [&](const char* name) {
    return register_module(
        name, torch::nn::Linear(torch::nn::LinearOptions(channels, channels).bias(false)));
  };
  query_ = map("query");
  key_ = map("key");
  value_ = map("value");
  out_ = register_module("out", torch::nn::Linear(channels, channels));
  const std::int64_t width = channels / heads;
  const auto wanted =
      static_cast<std::int64_t>(static_cast<double>(width) * std::log(static_cast<double>(width)));
  directions_ =
      register_buffer("directions", orthogonal_gaussian(std::max<std::int64_t>(wanted, 1), width));
}

torch::Tensor PerformerImpl::features(const torch::Tensor& rows, bool is_query) const {
  const torch::Tensor scaled = rows * std::pow(static_cast<double>(rows.size(1)), -0.25);
  const torch::Tensor exponent =
      ops::linear(scaled, directions_, {}) - 0.5 * scaled.square().sum(1, true);
  const torch::Tensor largest =
      is_query ? exponent.detach().amax(1, true) : exponent.detach().amax();
  return torch::exp(exponent - largest) + 1e-4;
}

torch::Tensor PerformerImpl::forward(const torch::Tensor& h, const graph::Gso& gso) {
  const torch::Tensor query = ops::linear(h, query_->weight, {});
  const torch::Tensor key = ops::linear(h, key_->weight, {});
  const torch::Tensor value = ops::linear(h, value_->weight, {});
  const std::int64_t width = h.size(1) / heads_;
  std::vector<torch::Tensor> graphs;
  for (std::int64_t g = 0; g < gso.num_graphs(); ++g) {
    const std::int64_t begin = gso.graph_ptr()[g];
    const std::int64_t end = gso.graph_ptr()[g + 1];
    if (begin == end) continue;
    std::vector<torch::Tensor> heads;
    for (std::int64_t head = 0; head < heads_; ++head) {
      const auto part = [&](const torch::Tensor& all) {
        return all.slice(0, begin, end).slice(1, head * width, (head + 1) * width);
      };
      // The sum of the weights is one more column of v.
      const torch::Tensor counted =
          torch::cat({part(value), torch::ones({end - begin, 1}, h.options())}, 1);
      const torch::Tensor gathered = ops::matmul(features(part(key), false).t(), counted);
      const torch::Tensor spread = ops::matmul(features(part(query), true), gathered);
      heads.push_back(spread.slice(1, 0, width) / spread.slice(1, width));
    }
    graphs.push_back(torch::cat(heads, 1));
  }
  if (graphs.empty()) return torch::zeros_like(h);
  return ops::linear(torch::cat(graphs), out_->weight, out_->bias);
}

}  // namespace mpssm::nn
