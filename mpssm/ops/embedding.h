// SPDX-License-Identifier: MIT
// A dense layer on categories: tables in place of one-hot columns.
#pragma once

#include <cstdint>
#include <span>

#include <ATen/core/Tensor.h>

namespace mpssm::ops {

/// linear(onehot(codes), weight, bias) without the one-hot matrix: codes [..., columns] hold whole
/// numbers, that of column c counts if it is in [0, vocabulary[c]) and else adds nothing; weight
/// [out, sum of vocabulary] as torch::nn::Linear keeps it. Differentiable once in weight and bias;
/// codes have no gradient. The same bits for any number of threads. float and double on the CPU,
/// torch's operations otherwise. Throws on shapes that do not fit.
at::Tensor embedding(const at::Tensor& codes, std::span<const std::int32_t> vocabulary,
                     const at::Tensor& weight, const at::Tensor& bias);

}  // namespace mpssm::ops
