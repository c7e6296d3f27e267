// SPDX-License-Identifier: MIT
// Dropout on all workers: the mask is a function of the seed, made again for the gradient.
#pragma once

#include <cstdint>

#include "mpssm/engine/executor.h"

namespace mpssm::engine {

/// y = x / (1 - probability), or 0 with the given probability in [0, 1). The gradient of x is the
/// same call on the gradient of y.
template <typename T>
void dropout(const T* x, std::int64_t count, std::uint64_t seed, double probability, T* y,
             const Executor& executor);

}  // namespace mpssm::engine
