// SPDX-License-Identifier: MIT
// The order in which rows are taken through several hops. One hop after the other, a slice too
// large for the cache comes from memory at each of them. But a row can take its next hop as soon as
// the rows that it reads have taken the one before, so where neighbours are near, several hops
// follow each other through the rows like waves, and what one leaves in cache the next one finds
// there. Every row is computed from the same numbers in the same way: outputs keep their bits.
// Internal to engine/.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "mpssm/graph/row_reach.h"
#include "mpssm/kernels/recurrence.h"
#include "mpssm/kernels/recurrence_bf16.h"

namespace mpssm::engine {

class HopWaves {
 public:
  /// Waves at once, at most.
  static constexpr std::int64_t kMost = 8;

  /// One hop after the other.
  explicit HopWaves(std::int64_t num_rows) : num_rows_(num_rows) {}

  /// `row_bytes`: what a hop touches for each row.
  HopWaves(std::int64_t num_rows, const graph::RowReach& reach, std::int64_t row_bytes)
      : num_rows_(num_rows), reach_(&reach) {
    // From one wave to the next, on average.
    std::int64_t lag = 0;
    const std::int64_t blocks = std::ssize(reach);
    for (std::int64_t block = 0; block < blocks; ++block) lag += reach[block] - begin(block);
    at_once_ = std::clamp<std::int64_t>(
        kBytes * blocks / std::max<std::int64_t>(lag * row_bytes, 1), 1, kMost);
  }

  std::int64_t at_once() const { return at_once_; }

  /// `run(hop, first, count)` for the rows of `hops` hops. A hop reads what the one before wrote,
  /// and may write over what that one read.
  template <typename Run>
  void operator()(std::int64_t hops, const Run& run) const {
    for (std::int64_t hop = 0; hop < hops; hop += at_once_) {
      const std::int64_t waves = std::min(at_once_, hops - hop);
      if (waves == 1) {
        run(hop, 0, num_rows_);
      } else {
        run_waves(hop, waves, run);
      }
    }
  }

 private:
  /// What the waves of a worker touch together: of a shared cache, what every core may have.
  static constexpr std::int64_t kBytes = std::int64_t{4} << 20;

  std::int64_t begin(std::int64_t block) const {
    return std::min(num_rows_, block * graph::kReachRows);
  }

  template <typename Run>
  void run_waves(std::int64_t hop, std::int64_t waves, const Run& run) const {
    const std::int64_t blocks = std::ssize(*reach_);
    std::array<std::int64_t, kMost> done = {};  // blocks of each wave
    const auto advance = [&](std::int64_t wave, std::int64_t to) {
      if (to == done[wave]) return;
      run(hop + wave, begin(done[wave]), begin(to) - begin(done[wave]));
      done[wave] = to;
    };
    for (std::int64_t block = 1; block <= blocks; ++block) {
      advance(0, block);
      for (std::int64_t wave = 1; wave < waves; ++wave) {
        std::int64_t to = done[wave];
        while (to < blocks && (*reach_)[to] <= begin(done[wave - 1])) ++to;
        advance(wave, to);
      }
    }
  }

  std::int64_t num_rows_;
  const graph::RowReach* reach_ = nullptr;
  std::int64_t at_once_ = 1;
};

/// A step of slices for some of its rows alone.
template <typename Step>
Step rows_of(Step step, std::int64_t first, std::int64_t count) {
  step.a.row_ptr += first;
  step.a.num_rows = count;
  if (step.add != nullptr) step.add += first * step.lanes;
  step.y += first * step.lanes;
  return step;
}
template <typename T>
kernels::SliceAdjointStep<T> rows_of(kernels::SliceAdjointStep<T> step, std::int64_t first,
                                     std::int64_t count) {
  const std::int64_t offset = first * step.lanes;
  step.a_transposed.row_ptr += first;
  step.a_transposed.num_rows = count;
  step.p_next += offset;
  if (step.add != nullptr) step.add += offset;
  if (step.total != nullptr) step.total += offset;
  if (step.other != nullptr) step.other += offset;
  return step;
}
inline kernels::Bf16SliceAdjointStep rows_of(kernels::Bf16SliceAdjointStep step, std::int64_t first,
                                             std::int64_t count) {
  const std::int64_t offset = first * step.lanes;
  step.a_transposed.row_ptr += first;
  step.a_transposed.num_rows = count;
  step.r_next += offset;
  if (step.total != nullptr) step.total += offset;
  if (step.before != nullptr) step.before += offset;
  if (step.other != nullptr) step.other += offset;
  return step;
}

}  // namespace mpssm::engine
