// SPDX-License-Identifier: MIT
#include "mpssm/engine/call_memory.h"

#include <cstdlib>
#include <mutex>
#include <new>
#include <sys/mman.h>
#include <utility>

namespace mpssm::engine {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kMostKept = std::size_t{1} << 28;
/// After so many calls in a row that would have done with a quarter, a block is given up.
constexpr int kPatience = 256;

/// The block that waits for the next call.
struct Spare {
  std::mutex mutex;
  void* memory = nullptr;
  std::size_t bytes = 0;
  int too_large = 0;
};
Spare& spare() {
  static Spare* const instance = new Spare;  // never destroyed: calls may come at exit
  return *instance;
}

}  // namespace

CallMemory::CallMemory(std::int64_t bytes) : asked_(static_cast<std::size_t>(bytes)) {
  Spare& kept = spare();
  {
    const std::lock_guard lock(kept.mutex);
    std::swap(memory_, kept.memory);
    std::swap(capacity_, kept.bytes);
  }
  if (capacity_ >= asked_) return;
  std::free(memory_);
  capacity_ = (asked_ + kPage - 1) / kPage * kPage;
  memory_ = std::aligned_alloc(
      capacity_ >= kLargePage ? kLargePage : kPage,
      capacity_ >= kLargePage ? (capacity_ + kLargePage - 1) / kLargePage * kLargePage : capacity_);
  if (memory_ == nullptr) {
    capacity_ = 0;
    throw std::bad_alloc();
  }
  advise_large_pages(memory_, capacity_);
}

CallMemory::~CallMemory() {
  Spare& kept = spare();
  {
    const std::lock_guard lock(kept.mutex);
    kept.too_large = asked_ < capacity_ / 4 ? kept.too_large + 1 : 0;
    if (capacity_ > kept.bytes && capacity_ <= kMostKept && kept.too_large < kPatience) {
      std::swap(memory_, kept.memory);
      std::swap(capacity_, kept.bytes);
    }
  }
  std::free(memory_);
}

void advise_large_pages(void* memory, std::size_t bytes) {
  if (bytes < 2 * kLargePage) return;
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  const std::uintptr_t first = (begin + kLargePage - 1) / kLargePage * kLargePage;
  const std::uintptr_t last = (begin + bytes) / kLargePage * kLargePage;
  // Only advice: an error changes nothing.
  if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
}

}  // namespace mpssm::engine
