// SPDX-License-Identifier: MIT
// Memory that a front brings to a call of the engine and that serves the next call as well.
#pragma once

#include <cstddef>
#include <cstdint>

#include "mpssm/engine/workspace.h"

namespace mpssm::engine {

/// Workspace for one call. The block goes back to the process and serves the next call, because
/// fresh pages cost more than some kernels; one that is much too large for what is asked of it, or
/// larger than what is worth keeping, goes back to the system.
class CallMemory {
 public:
  explicit CallMemory(std::int64_t bytes);
  ~CallMemory();
  CallMemory(const CallMemory&) = delete;
  CallMemory& operator=(const CallMemory&) = delete;

  Workspace workspace() const { return {memory_, static_cast<std::int64_t>(capacity_)}; }
  /// All of it as numbers, for calls that need one array.
  template <typename T>
  T* data() const {
    return static_cast<T*>(memory_);
  }

 private:
  void* memory_ = nullptr;
  std::size_t capacity_ = 0;
  std::size_t asked_ = 0;
};

/// What the system calls a large page.
inline constexpr std::size_t kLargePage = std::size_t{1} << 21;

/// Asks for large pages where the system leaves that to the program: a training step allocates its
/// activations anew each time, and page by page that costs as much as some kernels.
void advise_large_pages(void* memory, std::size_t bytes);

}  // namespace mpssm::engine
