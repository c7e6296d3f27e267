// SPDX-License-Identifier: MIT
// Dense layers on our own matrix product: many rows, few channels, the same bits for any number of
// threads whatever BLAS libtorch was built with, gradients included.
#pragma once

#include <ATen/core/Tensor.h>

#include "mpssm/engine/precision.h"
#include "mpssm/engine/row_place.h"

namespace mpssm::ops {

/// x W + bias for x [..., in], weight [out, in] (as torch::nn::Linear keeps it: W = weight'), bias
/// [out] or undefined. Differentiable once in all three. float and double on the CPU, torch's
/// otherwise. Throws unless all are on one device. With kBf16 the factors of this product and of
/// those in its backward pass are rounded to bfloat16; float only.
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                  engine::Precision precision = engine::Precision::kFloat32,
                  engine::RowPlace place = {});

/// x W for x [..., in] and w [in, out], in all else like linear().
at::Tensor matmul(const at::Tensor& x, const at::Tensor& w,
                  engine::Precision precision = engine::Precision::kFloat32,
                  engine::RowPlace place = {});

/// x' g for x [rows, left] and g [rows, right], both float or both double on the CPU: [left,
/// right]. The sum over the rows is cut into parts that do not depend on the threads, and the parts
/// are added in order. Not differentiable.
at::Tensor transposed_matmul(const at::Tensor& x, const at::Tensor& g,
                             engine::Precision precision = engine::Precision::kFloat32,
                             engine::RowPlace place = {});

}  // namespace mpssm::ops
