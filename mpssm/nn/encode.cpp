// SPDX-License-Identifier: MIT
#include "mpssm/nn/encode.h"

#include <numeric>

#include <torch/types.h>

#include "mpssm/ops/embedding.h"
#include "mpssm/ops/linear.h"

namespace mpssm::nn {
namespace {

std::int64_t num_values(const Vocabulary& vocabulary) {
  return std::accumulate(vocabulary.begin(), vocabulary.end(), std::int64_t{0});
}

}  // namespace

std::int64_t coded_width(std::int64_t in_channels, const Vocabulary& vocabulary) {
  return in_channels - num_values(vocabulary) + std::ssize(vocabulary);
}

bool can_take_codes(std::int64_t in_channels, const Vocabulary& vocabulary) {
  return !vocabulary.empty() && coded_width(in_channels, vocabulary) != in_channels;
}

bool has_input_width(const torch::Tensor& x, std::int64_t in_channels,
                     const Vocabulary& vocabulary) {
  return x.size(-1) == in_channels || (can_take_codes(in_channels, vocabulary) &&
                                       x.size(-1) == coded_width(in_channels, vocabulary));
}

torch::Tensor encode(const torch::nn::Linear& encoder, const Vocabulary& vocabulary,
                     const torch::Tensor& x, engine::RowPlace place) {
  const torch::Tensor& weight = encoder->weight;
  if (x.size(-1) == weight.size(1)) {
    return ops::linear(x, weight, encoder->bias, engine::Precision::kFloat32, place);
  }
  const std::int64_t columns = std::ssize(vocabulary);
  const std::int64_t values = num_values(vocabulary);
  const torch::Tensor h = ops::embedding(x.slice(-1, 0, columns), vocabulary,
                                         weight.slice(1, 0, values), encoder->bias);
  if (x.size(-1) == columns) return h;
  return h + ops::linear(x.slice(-1, columns), weight.slice(1, values), {},
                         engine::Precision::kFloat32, place);
}

}  // namespace mpssm::nn
