// SPDX-License-Identifier: MIT
// The threads of the process that loaded us: torch's own pool, called through its C interface.
#pragma once

#include <cstdint>
#include <functional>

#include "mpssm/engine/executor.h"

namespace mpssm::native {

/// torch_parallel_for and torch_get_num_threads of torch/csrc/stable/c/shim.h (torch 2.10 and
/// later).
using ParallelFor = std::int32_t (*)(std::int64_t begin, std::int64_t end, std::int64_t grain,
                                     void (*body)(std::int64_t, std::int64_t, void*),
                                     void* context);
using NumThreads = std::int32_t (*)(std::uint32_t* count);

/// From now on calls run on these threads. Before, each runs on the calling thread alone.
void use_threads(ParallelFor parallel_for, NumThreads num_threads);

/// As many workers as torch has threads, or MPSSM_NUM_THREADS if that is less. A second pool beside
/// torch's would spin against it, so there is none.
class HostThreads final : public engine::Executor {
 public:
  HostThreads();
  std::int64_t workers() const override { return workers_; }
  void run(const std::function<void(std::int64_t)>& worker) const override;

 private:
  std::int64_t workers_;
};

}  // namespace mpssm::native
