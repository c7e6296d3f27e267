// SPDX-License-Identifier: MIT
// What stands before and after a recurrence, each in one pass over the rows: a tile of rows goes
// through norm, product, nonlinearity and dropout while it sits in cache, forward and backward, and
// only what the backward pass cannot make again cheaply is kept.
#pragma once

#include <cstdint>

#include "mpssm/engine/activation.h"
#include "mpssm/engine/executor.h"
#include "mpssm/engine/precision.h"
#include "mpssm/engine/row_place.h"
#include "mpssm/engine/workspace.h"
#include "mpssm/kernels/bf16.h"

namespace mpssm::engine {

/// Layer normalisation of rows, if there is one: `scale` and `shift` [width], both or neither.
template <typename T>
struct RowNorm {
  const T* scale = nullptr;
  const T* shift = nullptr;
  double epsilon = 1e-5;

  explicit operator bool() const { return scale != nullptr; }
};

/// Gradients of scale and shift [width]; not written if there is no norm.
template <typename T>
struct RowNormGradients {
  T* scale = nullptr;
  T* shift = nullptr;
};

/// y = norm(x) W for x [rows, in], W [in, out].
template <typename T>
struct NormLinear {
  std::int64_t rows = 0;
  std::int64_t in = 0;
  std::int64_t out = 0;
  const T* x = nullptr;
  RowNorm<T> norm = {};
  const T* w = nullptr;
  Precision precision = Precision::kFloat32;  // of the products; kBf16 is for float
  /// kBf16, optional: [rows, in], where forward() leaves what backward() then reads instead of x:
  /// x less the mean of its row if there is a norm, which does not see the difference.
  kernels::Bf16* kept_x = nullptr;
  RowPlace place = {};
};

template <typename T>
std::int64_t forward_bytes(const NormLinear<T>& args, std::int64_t workers);
template <typename T>
std::int64_t backward_bytes(const NormLinear<T>& args, std::int64_t workers);
template <typename T>
void forward(const NormLinear<T>& args, T* y, Workspace workspace, const Executor& executor);
/// grad_x [rows, in] (optional), grad_w [in, out].
template <typename T>
void backward(const NormLinear<T>& args, const T* grad, T* grad_x, T* grad_w,
              const RowNormGradients<T>& grad_norm, Workspace workspace, const Executor& executor);

/// Which numbers are dropped is a function of the seed (engine/dropout.h). Probability 0: none.
struct Drop {
  std::uint64_t seed = 0;
  double probability = 0.0;
};

/// y = residual + drop(f(norm(x) W1' + b1) W2' + b2), a dropout after f as well; x [rows, in], W1
/// [hidden, in], W2 [out, hidden], as torch keeps them, y and residual [rows, out].
template <typename T>
struct FeedForward {
  std::int64_t rows = 0;
  std::int64_t in = 0;
  std::int64_t hidden = 0;
  std::int64_t out = 0;
  Activation activation = Activation::kGelu;
  Drop drop_hidden = {};
  Drop drop_out = {};
  const T* x = nullptr;
  RowNorm<T> norm = {};
  const T* w1 = nullptr;
  const T* b1 = nullptr;
  const T* w2 = nullptr;
  const T* b2 = nullptr;
  const T* residual = nullptr;                // optional
  Precision precision = Precision::kFloat32;  // of the products; kBf16 is for float
  kernels::Bf16* kept_x = nullptr;            // as above
  RowPlace place = {};
};

template <typename T>
struct FeedForwardGradients {
  T* x = nullptr;  // optional
  T* w1 = nullptr;
  T* b1 = nullptr;
  T* w2 = nullptr;
  T* b2 = nullptr;
  RowNormGradients<T> norm = {};
};

template <typename T>
std::int64_t forward_bytes(const FeedForward<T>& args, std::int64_t workers);
template <typename T>
std::int64_t backward_bytes(const FeedForward<T>& args, std::int64_t workers);
template <typename T>
void forward(const FeedForward<T>& args, T* y, Workspace workspace, const Executor& executor);
/// Makes the numbers before f again: one product more, instead of as much memory as x. The gradient
/// of the residual is `grad` itself.
template <typename T>
void backward(const FeedForward<T>& args, const T* grad, const FeedForwardGradients<T>& out,
              Workspace workspace, const Executor& executor);

}  // namespace mpssm::engine
