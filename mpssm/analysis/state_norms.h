// SPDX-License-Identifier: MIT
// What the learned matrix W does to a signal over the steps: ||W^tau|| and how far it carries.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

namespace mpssm::analysis {

// W as ops::recurrence takes it: dense real [C, C], or complex sigma [C/2] for a diagonal one.

/// Spectral norm of W^tau for each of `taus` (any order, none negative), in double. Infinity where
/// it passes what a double holds; exactly 0 where a nilpotent W is used up. Throws
/// std::invalid_argument on a W that is neither, or not finite.
std::vector<double> power_norms(const at::Tensor& w, std::span<const std::int64_t> taus);

/// Largest |eigenvalue| of W.
double spectral_radius(const at::Tensor& w);

/// The scales on which a W forgets.
struct StateReach {
  double radius = 0.0;
  /// First tau with ||W^tau|| < 1 %; -1 if there is none up to 10,000 (or W does not shrink).
  std::int64_t forgets_after = -1;
  /// Sum of tau ||W^tau|| over the sum of ||W^tau||, for tau = 0 .. hops: the hop that a unit of
  /// the block's state comes from on average, the graph left aside.
  double mean_hop = 0.0;
};
StateReach state_reach(const at::Tensor& w, std::int64_t hops);

}  // namespace mpssm::analysis
