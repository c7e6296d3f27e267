// SPDX-License-Identifier: MIT
// Threads and instruction set of this process.
#pragma once

#include <cstdint>

namespace mpssm::ops {

/// Sets libtorch's intra-op threads, and with them ours; 0 means every core this process may use.
/// Throws std::invalid_argument if negative.
void set_num_threads(std::int64_t num_threads);
std::int64_t num_threads();

/// Called by every operator; does its work once: all cores (some builds of libtorch start with
/// one), or MPSSM_NUM_THREADS, unless set_num_threads() came first; the instruction set of
/// MPSSM_SIMD if given. Throws std::invalid_argument, each time, if a variable makes no sense.
void ensure_runtime();

}  // namespace mpssm::ops
