// SPDX-License-Identifier: MIT
// What stands before and after a recurrence, each as one operator: a norm and a product; a norm,
// an MLP with dropout and the residual sum. They give what the single operators give one by one,
// with fewer passes over memory and less kept for the backward pass.
#pragma once

#include <ATen/core/Tensor.h>

#include "mpssm/engine/activation.h"
#include "mpssm/engine/precision.h"
#include "mpssm/engine/row_place.h"

namespace mpssm::ops {

/// Layer normalisation over the last axis: scale and shift [C], both or neither.
struct NormWeights {
  at::Tensor scale;
  at::Tensor shift;
};

/// norm(x) W for x [..., in], W [in, out]. Differentiable once in all arguments. Keeps x alone.
/// With kBf16 the factors of the products are rounded to bfloat16, forward and backward; float
/// only.
at::Tensor norm_linear(const at::Tensor& x, const NormWeights& norm, const at::Tensor& w,
                       engine::Precision precision = engine::Precision::kFloat32,
                       engine::RowPlace place = {});

struct FeedForwardWeights {
  NormWeights norm;
  at::Tensor w1;  ///< [hidden, in]
  at::Tensor b1;  ///< [hidden]
  at::Tensor w2;  ///< [out, hidden]
  at::Tensor b2;  ///< [out]
};

struct FeedForwardOptions {
  engine::Activation activation = engine::Activation::kGelu;
  double drop_hidden = 0.0;  ///< probability of dropout after the nonlinearity
  double drop_out = 0.0;     ///< and on the result, before the residual
  at::Tensor residual = {};  ///< [..., out], added to the result
  engine::Precision precision = engine::Precision::kFloat32;  ///< of the products, as above
  engine::RowPlace place = {};
};

/// residual + drop(f(norm(x) W1' + b1) W2' + b2) for x [..., in]. Differentiable once in all
/// tensors. A dropout takes one number of current_generator(), the inner one first, as ops::dropout
/// does. Keeps x and the numbers before f.
at::Tensor feed_forward(const at::Tensor& x, const FeedForwardWeights& weights,
                        const FeedForwardOptions& options = {});

}  // namespace mpssm::ops
