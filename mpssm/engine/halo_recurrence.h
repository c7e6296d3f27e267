// SPDX-License-Identifier: MIT
// The static recurrence with a diagonal W for the nodes that one of several processes has: at every
// hop it reads some nodes of others, the halo, which the caller brings.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "mpssm/engine/executor.h"
#include "mpssm/kernels/csr_view.h"

namespace mpssm::engine {

/// Rows of A for own nodes; columns are own nodes, then the halo.
template <typename T>
struct HaloRows {
  kernels::CsrView<T> a;
  std::int64_t halo = 0;  ///< nodes of others
  /// Sets the rows behind the own ones of x [own + halo, width].
  std::function<void(T* x, std::int64_t width)> fill;

  std::int64_t own() const { return a.num_rows; }
};

/// X(T) = sum_(i<T) A^i C W^i for own nodes, W = diag(sigma) on pairs of channels, T >= 1.
template <typename T>
struct HaloRecurrence {
  const HaloRows<T>* rows = nullptr;        ///< of A
  const HaloRows<T>* transposed = nullptr;  ///< of A'; backward() reads it
  std::int64_t channels = 0;                ///< even
  std::int64_t num_steps = 1;               ///< T
  /// First own node of each part, and the end: the gradient of sigma is summed part by part, so
  /// that its bits do not depend on who has which parts.
  std::span<const std::int64_t> parts = {};
};

/// y = A x for own nodes: x [own + halo, width], of which the halo is filled here.
template <typename T>
void halo_spmm(const HaloRows<T>& rows, T* x, std::int64_t width, T* y, const Executor& executor);

/// Numbers of scratch that a call takes.
template <typename T>
std::int64_t forward_scratch(const HaloRecurrence<T>& args);
template <typename T>
std::int64_t backward_scratch(const HaloRecurrence<T>& args);

/// x [own, channels] from c [own, channels] and sigma [channels / 2] as pairs (re, im). Fills the
/// halo T - 1 times; the numbers of a node do not depend on who has it.
template <typename T>
void forward(const HaloRecurrence<T>& args, const T* c, const T* sigma, T* x, T* scratch,
             const Executor& executor);

/// From the gradient of x: that of c, and that of sigma for each part, [parts, channels / 2] pairs.
/// Fills the halo of A' T - 1 times and keeps no state.
template <typename T>
void backward(const HaloRecurrence<T>& args, const T* c, const T* sigma, const T* grad, T* grad_c,
              double* grad_sigma, T* scratch, const Executor& executor);

}  // namespace mpssm::engine
