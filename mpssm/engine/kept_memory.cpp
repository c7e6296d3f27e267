// SPDX-License-Identifier: MIT
#include "mpssm/engine/kept_memory.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <new>
#include <sys/mman.h>

#include "mpssm/engine/call_memory.h"

namespace mpssm::engine {

namespace {

constexpr std::size_t kFreedWhenShort = std::size_t{1} << 25;

/// Few different sizes, so that batches of about the same size can have each other's memory.
std::size_t rounded_bytes(std::size_t bytes) {
  const std::size_t step = std::max<std::size_t>(std::bit_floor(bytes) / 8, 1 << 16);
  return (bytes + step - 1) / step * step;
}

/// Pages of the system's own, not of the C library's heap, where holes would be left between them.
void* map_pages(std::size_t bytes) {
  const std::size_t spare = bytes >= kLargePage ? kLargePage : 0;
  void* const mapped =
      mmap(nullptr, bytes + spare, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  if (spare == 0) return mapped;
  const auto begin = reinterpret_cast<std::uintptr_t>(mapped);
  const std::uintptr_t aligned = (begin + spare - 1) / spare * spare;
  if (aligned > begin) munmap(mapped, aligned - begin);
  munmap(reinterpret_cast<void*>(aligned + bytes), begin + spare - aligned);
  void* const memory = reinterpret_cast<void*>(aligned);
  advise_large_pages(memory, bytes);
  return memory;
}

}  // namespace

KeptMemory::~KeptMemory() {
  while (!kept_.empty()) release(kept_.begin());
}

void KeptMemory::release(std::deque<Kept>::iterator kept) {
  munmap(kept->block.memory, kept->block.bytes);
  totals_.kept -= kept->block.bytes;
  kept_.erase(kept);
}

KeptMemory::Block KeptMemory::take(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  ++takes_;
  while (!kept_.empty() && takes_ - kept_.front().since > kPatience) release(kept_.begin());
  Block block{nullptr, rounded_bytes(bytes)};
  // The one that fits best, if it is not much too large.
  auto best = kept_.end();
  for (auto kept = kept_.begin(); kept != kept_.end(); ++kept) {
    if (kept->block.bytes < block.bytes || kept->block.bytes > block.bytes / 4 * 5) continue;
    if (best == kept_.end() || kept->block.bytes < best->block.bytes) best = kept;
  }
  if (best != kept_.end()) {
    block = best->block;
    totals_.kept -= block.bytes;
    kept_.erase(best);
  } else {
    while (!kept_.empty() &&
           totals_.used + totals_.kept + block.bytes > std::max(totals_.most_used, block.bytes)) {
      release(kept_.begin());
    }
    block.memory = map_pages(block.bytes);
  }
  totals_.used += block.bytes;
  totals_.most_used = std::max(totals_.most_used, totals_.used);
  return block;
}

void KeptMemory::give(const Block& block) noexcept {
#ifdef MADV_FREE
  // Not worth a call for small ones.
  if (block.bytes >= kFreedWhenShort) madvise(block.memory, block.bytes, MADV_FREE);
#endif
  const std::lock_guard lock(mutex_);
  totals_.used -= block.bytes;
  try {
    kept_.push_back({block, takes_});
    totals_.kept += block.bytes;
  } catch (const std::bad_alloc&) {
    munmap(block.memory, block.bytes);
  }
}

KeptMemory::Totals KeptMemory::totals() {
  const std::lock_guard lock(mutex_);
  return totals_;
}

KeptMemory& kept_memory() {
  static auto* const instance = new KeptMemory;
  return *instance;
}

}  // namespace mpssm::engine
