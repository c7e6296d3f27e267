// SPDX-License-Identifier: MIT
// The first layer of every network: from what is known of a node to its channels.
#pragma once

#include <cstdint>
#include <vector>

#include <torch/nn/modules/linear.h>

#include "mpssm/engine/row_place.h"

namespace mpssm::nn {

/// Features that are categories, the first ones of a network's input: values that each of them can
/// have. The encoder has a weight per value, as if they came one-hot; so does its file.
using Vocabulary = std::vector<std::int32_t>;

/// Features of one node where each category is one number, not as many as it has values.
std::int64_t coded_width(std::int64_t in_channels, const Vocabulary& vocabulary);

/// Whether categories may come as numbers: there are some, and the width of the input tells.
bool can_take_codes(std::int64_t in_channels, const Vocabulary& vocabulary);

/// x [..., in] or, with categories as numbers, [..., coded_width] -> [..., out]: the same function
/// either way. Numbers that are no value of their category add nothing, and have no gradient.
torch::Tensor encode(const torch::nn::Linear& encoder, const Vocabulary& vocabulary,
                     const torch::Tensor& x, engine::RowPlace place = {});

/// Whether x has one of these two widths.
bool has_input_width(const torch::Tensor& x, std::int64_t in_channels,
                     const Vocabulary& vocabulary);

}  // namespace mpssm::nn
