// SPDX-License-Identifier: MIT
#include "mpssm/engine/kept_memory.h"

#include <cstdint>
#include <cstring>

#include <gtest/gtest.h>

namespace mpssm::engine {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

TEST(KeptMemory, GivesABlockAgain) {
  KeptMemory memory;
  const auto first = memory.take(41 * kMiB);
  EXPECT_EQ(first.bytes, 44 * kMiB);  // a multiple of an eighth of 32 MiB
  std::memset(first.memory, 1, first.bytes);
  memory.give(first);
  EXPECT_EQ(memory.totals().kept, 44 * kMiB);
  const auto again = memory.take(40 * kMiB);
  EXPECT_EQ(again.memory, first.memory);
  EXPECT_EQ(memory.totals().kept, 0U);
  memory.give(again);
}

TEST(KeptMemory, GivesAtMostAnEighthMoreThanIsAskedFor) {
  KeptMemory memory;
  for (std::size_t bytes = 5 * kMiB / 4; bytes < 200 * kMiB; bytes += bytes / 7 + 12345) {
    const auto block = memory.take(bytes);
    EXPECT_GE(block.bytes, bytes);
    EXPECT_LE(block.bytes, bytes + bytes / 8);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block.memory) % 4096, 0U);
    std::memset(block.memory, 1, block.bytes);
    memory.give(block);
  }
}

TEST(KeptMemory, HoldsNoMoreThanWasOnceUsed) {
  KeptMemory memory;
  const auto a = memory.take(40 * kMiB);
  const auto b = memory.take(60 * kMiB);
  memory.give(a);
  memory.give(b);
  // Neither fits, so the older one makes room, and then the other.
  const auto c = memory.take(30 * kMiB);
  EXPECT_EQ(memory.totals().used + memory.totals().kept, 90 * kMiB);
  const auto d = memory.take(20 * kMiB);
  EXPECT_EQ(memory.totals().used + memory.totals().kept, 50 * kMiB);
  EXPECT_EQ(memory.totals().most_used, 100 * kMiB);
  memory.give(c);
  memory.give(d);
}

TEST(KeptMemory, GivesUpWhatNobodyWants) {
  KeptMemory memory;
  const auto large = memory.take(100 * kMiB);
  memory.give(memory.take(kMiB));
  memory.give(large);
  for (std::int64_t call = 0; call < KeptMemory::kPatience; ++call) memory.give(memory.take(kMiB));
  EXPECT_EQ(memory.totals().kept, 105 * kMiB);
  memory.give(memory.take(kMiB));
  EXPECT_EQ(memory.totals().kept, kMiB);
}

}  // namespace
}  // namespace mpssm::engine
