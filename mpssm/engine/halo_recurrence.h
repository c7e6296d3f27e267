// SPDX-License-Identifier: MIT
// The static recurrence with a diagonal W for the nodes that one of several processes has: it reads
// some nodes of others, the halo, which the caller brings, at every hop or for several at once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "mpssm/engine/executor.h"
#include "mpssm/kernels/csr_view.h"

namespace mpssm::engine {

/// Rows of A for own nodes; columns are own nodes, then the halo. A halo of several rings serves as
/// many hops: rows of its inner rings are computed here again, one ring less at each of them.
template <typename T>
struct HaloRows {
  kernels::CsrView<T> a;  ///< rows of own nodes, then of all rings but the last
  std::int64_t halo = 0;  ///< nodes of others
  /// Sets the rows behind the own ones of x [own + halo, width].
  std::function<void(T* x, std::int64_t width)> fill;
  /// Nodes within 0, 1, ... hops of own ones, nearest first; empty: one ring.
  std::vector<std::int64_t> within = {};

  std::int64_t own() const { return within.empty() ? a.num_rows : within.front(); }
  std::int64_t hops_per_fill() const { return within.empty() ? 1 : std::ssize(within) - 1; }
  bool needs_fill(std::int64_t hop) const { return hop % hops_per_fill() == 0; }
  /// Rows that the hop from 0 of `hops` computes: those that a later hop before the next fill
  /// reads.
  std::int64_t rows_at(std::int64_t hop, std::int64_t hops) const {
    const std::int64_t next_fill = hop + hops_per_fill() - hop % hops_per_fill();
    return within.empty() ? a.num_rows : within[std::min(next_fill, hops) - hop - 1];
  }
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

/// y = A x for own nodes: x [own + halo, width], of which the halo is filled here. One ring.
template <typename T>
void halo_spmm(const HaloRows<T>& rows, T* x, std::int64_t width, T* y, const Executor& executor);

/// The same for the first `count` rows, with a halo that is filled.
template <typename T>
void ring_spmm(const HaloRows<T>& rows, const T* x, std::int64_t width, std::int64_t count, T* y,
               const Executor& executor);

/// Numbers of scratch that a call takes.
template <typename T>
std::int64_t forward_scratch(const HaloRecurrence<T>& args);
template <typename T>
std::int64_t backward_scratch(const HaloRecurrence<T>& args);

/// x [own, channels] from c [own, channels] and sigma [channels / 2] as pairs (re, im). Fills the
/// halo T - 1 times, or every hops_per_fill() hops; the numbers of a node do not depend on who has
/// it.
template <typename T>
void forward(const HaloRecurrence<T>& args, const T* c, const T* sigma, T* x, T* scratch,
             const Executor& executor);

/// From the gradient of x: that of c, and that of sigma for each part, [parts, channels / 2] pairs.
/// Fills the halo of A' as often and keeps no state.
template <typename T>
void backward(const HaloRecurrence<T>& args, const T* c, const T* sigma, const T* grad, T* grad_c,
              double* grad_sigma, T* scratch, const Executor& executor);

}  // namespace mpssm::engine
