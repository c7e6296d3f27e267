// SPDX-License-Identifier: MIT
// Memory that a call may use while it runs. The caller owns it and learns its size beforehand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>

namespace mpssm::engine {

/// Hands out pieces of a block of memory from its front. Without a block it only counts: an
/// algorithm that takes its pieces in one place can be asked how much it needs.
class Workspace {
 public:
  /// Pieces begin at multiples of this, and so must the block.
  static constexpr std::size_t kAlignment = 64;

  Workspace() = default;
  Workspace(void* memory, std::int64_t bytes)
      : memory_(static_cast<std::byte*>(memory)), size_(static_cast<std::size_t>(bytes)) {}

  /// Room for `count` numbers, whatever they hold; null if there is no block. Throws
  /// std::length_error if the block is too small: its owner asked for another call's size.
  template <typename T>
  T* take(std::int64_t count) {
    const std::size_t begin = used_;
    used_ +=
        (static_cast<std::size_t>(count) * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
    if (memory_ == nullptr) return nullptr;
    if (used_ > size_) throw std::length_error("Workspace: smaller than the call needs");
    return reinterpret_cast<T*>(memory_ + begin);
  }

  /// Bytes taken so far.
  std::int64_t used() const { return static_cast<std::int64_t>(used_); }

 private:
  std::byte* memory_ = nullptr;
  std::size_t size_ = 0;
  std::size_t used_ = 0;
};

}  // namespace mpssm::engine
