// SPDX-License-Identifier: MIT
#include "mpssm/engine/dropout.h"

#include "mpssm/engine/tasks.h"
#include "mpssm/kernels/dropout.h"

namespace mpssm::engine {

template <typename T>
void dropout(const T* x, std::int64_t count, std::uint64_t seed, double probability, T* y,
             const Executor& executor) {
  for_numbers(executor, count, [&](std::int64_t begin, std::int64_t end) {
    kernels::dropout(x + begin, y + begin, end - begin, static_cast<std::uint64_t>(begin), seed,
                     probability);
  });
}

template void dropout<float>(const float*, std::int64_t, std::uint64_t, double, float*,
                             const Executor&);
template void dropout<double>(const double*, std::int64_t, std::uint64_t, double, double*,
                              const Executor&);

}  // namespace mpssm::engine
