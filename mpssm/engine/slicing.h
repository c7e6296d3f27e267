// SPDX-License-Identifier: MIT
// How plan diagonal cuts its channels into slices.
// Internal to engine/.
#pragma once

#include <algorithm>
#include <cstdint>

#include "mpssm/engine/recurrence.h"
#include "mpssm/kernels/recurrence.h"

namespace mpssm::engine {

/// How the channels of a problem are cut into slices. Results do not depend on it.
struct Slicing {
  std::int64_t lanes = 0;
  std::int64_t count = 0;

  /// S: what a slice is made of.
  template <typename S>
  static Slicing make(const RecurrenceShape& shape, std::int64_t workers) {
    Slicing slicing;
    slicing.lanes = kernels::kMaxSliceLanes<S>;
    const auto count_with = [&](std::int64_t lanes) {
      return (shape.channels + lanes - 1) / lanes;
    };
    // Narrower slices where a full one would be mostly padding or would leave workers idle.
    while (slicing.lanes > kernels::kMinSliceLanes &&
           (slicing.lanes / 2 >= shape.channels ||
            shape.batch * count_with(slicing.lanes) < workers)) {
      slicing.lanes /= 2;
    }
    slicing.count = count_with(slicing.lanes);
    return slicing;
  }

  std::int64_t half() const { return count * lanes / 2; }  ///< complex channels, padding included
};

/// sigma spread over slices: [count][lanes / 2], zero in the padding.
template <typename T>
void spread_sigma(const T* sigma, std::int64_t channels, const Slicing& slicing, T* re, T* im) {
  std::fill(re, re + slicing.half(), T{0});
  std::fill(im, im + slicing.half(), T{0});
  for (std::int64_t c = 0; c < channels / 2; ++c) {
    re[c] = sigma[2 * c];
    im[c] = sigma[2 * c + 1];
  }
}

/// The gradient of sigma from those of the tasks, [batch][half()] each: added up in a fixed order,
/// for the same bits with any number of threads.
template <typename T>
void gather_sigma(const double* re, const double* im, const RecurrenceShape& shape,
                  const Slicing& slicing, T* sigma) {
  for (std::int64_t c = 0; c < shape.channels / 2; ++c) {
    double sum_re = 0.0;
    double sum_im = 0.0;
    for (std::int64_t b = 0; b < shape.batch; ++b) {
      sum_re += re[b * slicing.half() + c];
      sum_im += im[b * slicing.half() + c];
    }
    sigma[2 * c] = static_cast<T>(sum_re);
    sigma[2 * c + 1] = static_cast<T>(sum_im);
  }
}

inline std::int64_t slice_work(const RecurrenceShape& shape) {
  return shape.batch * shape.num_steps * shape.channels *
         (shape.gso.num_nonzeros() + shape.num_nodes());
}

}  // namespace mpssm::engine
