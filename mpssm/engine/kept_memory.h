// SPDX-License-Identifier: MIT
// Memory of tensors that waits for the next one. The C library gives blocks of 32 MiB and more back
// to the system at once, and taking their pages anew costs a sixth to a third of a sparse product;
// and before glibc 2.38 it cannot use the place of a freed tensor for the next aligned one of the
// same size: a training took 1.6 times the memory of its tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>

namespace mpssm::engine {

/// Blocks of memory, kept when they are given back. Kept and used ones together are never more than
/// the used ones once were, the system may have the pages of large kept ones whenever it is
/// short of memory (MADV_FREE), and what nobody has wanted for a while is given up. Thread-safe.
class KeptMemory {
 public:
  struct Block {
    void* memory = nullptr;
    std::size_t bytes = 0;
  };
  struct Totals {
    std::size_t used = 0;
    std::size_t kept = 0;
    std::size_t most_used = 0;
  };

  KeptMemory() = default;
  ~KeptMemory();
  KeptMemory(const KeptMemory&) = delete;
  KeptMemory& operator=(const KeptMemory&) = delete;

  /// At least `bytes`, by at most an eighth more; large ones aligned to a large page. Throws
  /// std::bad_alloc.
  Block take(std::size_t bytes);
  void give(const Block& block) noexcept;
  Totals totals();

  /// Takes after which a block that none of them wanted is given up.
  static constexpr std::int64_t kPatience = 8192;

 private:
  struct Kept {
    Block block;
    std::int64_t since = 0;  // takes_ when it came
  };
  void release(std::deque<Kept>::iterator kept);

  std::mutex mutex_;
  std::deque<Kept> kept_;  // the oldest first
  Totals totals_;
  std::int64_t takes_ = 0;
};

/// Smaller tensors leave smaller holes in the C library's heap, and come and go faster there.
inline constexpr std::size_t kLeastKept = std::size_t{1} << 18;

/// The process's own, never destroyed: tensors may outlive everything.
KeptMemory& kept_memory();

}  // namespace mpssm::engine
