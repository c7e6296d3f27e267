// SPDX-License-Identifier: MIT
#include "mpssm/ops/kept_memory.h"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <sys/mman.h>

#include "mpssm/engine/call_memory.h"

namespace mpssm::ops {

namespace {

constexpr std::size_t kLargePage = std::size_t{1} << 21;

}  // namespace

KeptMemory::~KeptMemory() {
  while (!kept_.empty()) release(kept_.begin());
}

void KeptMemory::release(std::deque<Kept>::iterator kept) {
  std::free(kept->block.memory);
  totals_.kept -= kept->block.bytes;
  kept_.erase(kept);
}

KeptMemory::Block KeptMemory::take(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  ++takes_;
  while (!kept_.empty() && takes_ - kept_.front().since > kPatience) release(kept_.begin());
  Block block{nullptr, (bytes + kLargePage - 1) / kLargePage * kLargePage};
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
    block.memory = std::aligned_alloc(kLargePage, block.bytes);
    if (block.memory == nullptr) throw std::bad_alloc();
    engine::advise_large_pages(block.memory, block.bytes);
  }
  totals_.used += block.bytes;
  totals_.most_used = std::max(totals_.most_used, totals_.used);
  return block;
}

void KeptMemory::give(const Block& block) noexcept {
#ifdef MADV_FREE
  madvise(block.memory, block.bytes, MADV_FREE);
#endif
  const std::lock_guard lock(mutex_);
  totals_.used -= block.bytes;
  try {
    kept_.push_back({block, takes_});
    totals_.kept += block.bytes;
  } catch (const std::bad_alloc&) {
    std::free(block.memory);
  }
}

KeptMemory::Totals KeptMemory::totals() {
  const std::lock_guard lock(mutex_);
  return totals_;
}

}  // namespace mpssm::ops
