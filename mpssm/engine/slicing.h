// SPDX-License-Identifier: MIT
// How plan diagonal cuts its channels into slices.
// Internal to engine/.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "mpssm/engine/recurrence.h"
#include "mpssm/kernels/recurrence.h"

namespace mpssm::engine {

/// Some channels of one group, and where they are.
struct ChannelSlice {
  std::int64_t group = 0;
  std::int64_t begin = 0;  ///< first channel, real
  std::int64_t width = 0;  ///< channels, real
  std::int64_t lanes = 0;  ///< room for them
  std::int64_t half = 0;   ///< complex lanes of the slices before
};

/// How the channels of a problem are cut into slices, none of which straddles two groups. Results
/// do not depend on it.
struct Slicing {
  std::vector<ChannelSlice> slices;
  std::int64_t lanes = 0;  ///< of the widest
  std::int64_t half = 0;   ///< complex lanes of all, padding included

  /// S: what a slice is made of.
  template <typename S>
  static Slicing make(const RecurrenceShape& shape, std::int64_t workers) {
    const std::vector<std::int64_t> begins = shape.gso.channel_begins(shape.channels);
    Slicing slicing = cut(begins, kernels::kMaxSliceLanes<S>);
    // Narrower slices where full ones would leave workers idle.
    for (std::int64_t most = kernels::kMaxSliceLanes<S> / 2;
         most >= kernels::kMinSliceLanes && shape.batch * slicing.count() < workers; most /= 2) {
      slicing = cut(begins, most);
    }
    return slicing;
  }

  std::int64_t count() const { return std::ssize(slices); }
  const ChannelSlice& of_task(std::int64_t task) const { return slices[task % count()]; }

 private:
  static Slicing cut(const std::vector<std::int64_t>& begins, std::int64_t most) {
    Slicing slicing;
    for (std::size_t g = 0; g + 1 < begins.size(); ++g) {
      for (std::int64_t begin = begins[g]; begin < begins[g + 1]; begin += most) {
        const std::int64_t width = std::min(most, begins[g + 1] - begin);
        // Not wider than a group's last channels need.
        std::int64_t lanes = most;
        while (lanes > kernels::kMinSliceLanes && lanes / 2 >= width) lanes /= 2;
        slicing.slices.push_back({static_cast<std::int64_t>(g), begin, width, lanes, slicing.half});
        slicing.lanes = std::max(slicing.lanes, lanes);
        slicing.half += lanes / 2;
      }
    }
    return slicing;
  }
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
