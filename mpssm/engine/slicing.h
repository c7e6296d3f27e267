// SPDX-License-Identifier: MIT
// How plan diagonal cuts its channels into slices.
// Internal to engine/.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "mpssm/engine/recurrence.h"
#include "mpssm/engine/tasks.h"
#include "mpssm/kernels/recurrence.h"

namespace mpssm::engine {

/// Some channels of one group, or of groups whose operators share a slice, and where they are.
struct ChannelSlice {
  std::int64_t group = 0;  ///< the first
  /// Where the channels of the groups after it begin, counted from the slice's first; 0: no more.
  std::array<std::int64_t, kernels::kMostSliceOperators - 1> next = {};
  std::int64_t begin = 0;  ///< first channel, real
  std::int64_t width = 0;  ///< channels, real
  std::int64_t lanes = 0;  ///< room for them
  std::int64_t half = 0;   ///< complex lanes of the slices before

  std::int64_t end() const { return begin + width; }
  std::int64_t num_operators() const {
    return 1 + std::count_if(next.begin(), next.end(), [](std::int64_t at) { return at > 0; });
  }
};

/// How the channels of a problem are cut into slices, none of which straddles two groups unless
/// these may share one. Results do not depend on it.
struct Slicing {
  std::vector<ChannelSlice> slices;
  std::int64_t lanes = 0;  ///< of the widest
  std::int64_t half = 0;   ///< complex lanes of all, padding included

  /// S: what a slice is made of. `joined`: which groups may share a slice with the one before;
  /// empty: none.
  template <typename S>
  static Slicing make(const RecurrenceShape& shape, std::int64_t workers,
                      const std::vector<bool>& joined = {}) {
    const std::vector<std::int64_t> begins = shape.gso.channel_begins(shape.channels);
    std::int64_t most = kernels::kMaxSliceLanes<S>;
    Slicing slicing = cut<S>(begins, most, joined);
    // Narrower slices where full ones would leave workers idle.
    while (most > kernels::kMinSliceLanes && shape.batch * slicing.count() < workers) {
      most = kAnyLanes<S> ? most - kernels::kMinSliceLanes : most / 2;
      slicing = cut<S>(begins, most, joined);
    }
    return slicing;
  }

  /// Slices of `most` lanes; what is left of a group, or of groups that are joined, is one slice,
  /// narrower or, if the kernels have it, wider.
  template <typename S>
  static Slicing cut(const std::vector<std::int64_t>& begins,
                     std::int64_t most = kernels::kMaxSliceLanes<S>,
                     const std::vector<bool>& joined = {}) {
    const std::int64_t widest = kAnyLanes<S> ? most + most / 2 : most;
    const std::size_t groups = begins.size() - 1;
    Slicing slicing;
    std::size_t end = 0;  // of the groups that are joined
    for (std::size_t g = 0; g < groups;) {
      while (end <= g || (end < groups && !joined.empty() && joined[end])) ++end;
      const std::int64_t begin = slicing.slices.empty() ? 0 : slicing.slices.back().end();
      if (begins[g + 1] == begin) {
        ++g;
        continue;
      }
      const std::size_t past =
          std::min(end, g + static_cast<std::size_t>(kernels::kMostSliceOperators));
      const std::int64_t left = begins[end] - begin;
      const std::int64_t width = std::min(left <= widest ? left : most, begins[past] - begin);
      ChannelSlice slice{.group = static_cast<std::int64_t>(g), .begin = begin, .width = width};
      slice.lanes = lanes_for<S>(width);
      slice.half = slicing.half;
      for (std::size_t k = 0; g + k + 1 < past && begins[g + k + 1] < slice.end(); ++k) {
        slice.next[k] = begins[g + k + 1] - begin;
      }
      slicing.slices.push_back(slice);
      slicing.lanes = std::max(slicing.lanes, slice.lanes);
      slicing.half += slice.lanes / 2;
      while (g < end && begins[g + 1] <= slice.end()) ++g;
    }
    return slicing;
  }

  /// Of the slices that the kernels have, the narrowest for so many channels.
  template <typename S>
  static std::int64_t lanes_for(std::int64_t width) {
    if (kAnyLanes<S>) return round_up(width, kernels::kMinSliceLanes);
    return static_cast<std::int64_t>(
        std::bit_ceil(static_cast<std::uint64_t>(std::max(width, kernels::kMinSliceLanes))));
  }

  std::int64_t count() const { return std::ssize(slices); }
  /// Numbers of operators that share a slice, for the slice with most; 0: none do.
  std::int64_t most_shared_entries(const graph::Operators& gso) const {
    std::int64_t most = 0;
    for (const ChannelSlice& slice : slices) {
      if (slice.num_operators() == 1) continue;
      most = std::max(most, slice.num_operators() * gso.of_group(slice.group).num_nonzeros());
    }
    return most;
  }
  const ChannelSlice& of_task(std::int64_t task) const { return slices[task % count()]; }

 private:
  /// Not of bfloat16, which has powers of two.
  template <typename S>
  static constexpr bool kAnyLanes = sizeof(S) > 2;
};

/// sigma spread over slices: [half], zero in the padding.
template <typename T>
void spread_sigma(const T* sigma, const Slicing& slicing, T* re, T* im) {
  std::fill(re, re + slicing.half, T{0});
  std::fill(im, im + slicing.half, T{0});
  for (const ChannelSlice& slice : slicing.slices) {
    for (std::int64_t c = 0; c < slice.width / 2; ++c) {
      re[slice.half + c] = sigma[slice.begin + 2 * c];
      im[slice.half + c] = sigma[slice.begin + 2 * c + 1];
    }
  }
}

/// The gradient of sigma from those of the tasks, [batch][half] each: added up in a fixed order,
/// for the same bits with any number of threads.
template <typename T>
void gather_sigma(const double* re, const double* im, const RecurrenceShape& shape,
                  const Slicing& slicing, T* sigma) {
  for (const ChannelSlice& slice : slicing.slices) {
    for (std::int64_t c = 0; c < slice.width / 2; ++c) {
      double sum_re = 0.0;
      double sum_im = 0.0;
      for (std::int64_t b = 0; b < shape.batch; ++b) {
        sum_re += re[b * slicing.half + slice.half + c];
        sum_im += im[b * slicing.half + slice.half + c];
      }
      sigma[slice.begin + 2 * c] = static_cast<T>(sum_re);
      sigma[slice.begin + 2 * c + 1] = static_cast<T>(sum_im);
    }
  }
}

inline std::int64_t slice_work(const RecurrenceShape& shape) {
  const graph::Operators gso = shape.gso.largest();
  const std::vector<std::int64_t> begins = gso.channel_begins(shape.channels);
  std::int64_t work = 0;
  for (std::int64_t g = 0; g < gso.num_groups(); ++g) {
    work += (begins[g + 1] - begins[g]) * (gso.of_group(g).num_nonzeros() + shape.num_nodes());
  }
  return shape.batch * shape.num_steps * shape.hops_per_step * work;
}

}  // namespace mpssm::engine
