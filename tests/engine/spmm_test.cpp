// SPDX-License-Identifier: MIT
#include "mpssm/engine/spmm.h"

#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "mpssm/engine/thread_pool.h"
#include "mpssm/graph/generators.h"
#include "mpssm/graph/gso.h"

namespace mpssm::engine {
namespace {

std::vector<float> random_numbers(std::int64_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> numbers(static_cast<std::size_t>(count));
  for (float& number : numbers) number = std::uniform_real_distribution<float>(-1, 1)(random);
  return numbers;
}

// Five slices, the last one narrow.
TEST(Spmm, HasTheSameBitsWithScratchAndOnAnyNumberOfWorkers) {
  constexpr std::int64_t kNodes = 33'000, kWidth = 130, kBatch = 2;
  const graph::Gso gso = graph::make_gso(graph::make_random_connected(kNodes, 5 * kNodes, 1));
  const auto x = random_numbers(kBatch * kNodes * kWidth, 1);
  const auto add = random_numbers(kBatch * kNodes * kWidth, 2);
  SpmmBatch<float> args;
  args.a = gso.view<float>();
  args.batch = kBatch;
  args.width = kWidth;
  args.x_stride = args.add_stride = args.y_stride = kNodes * kWidth;
  args.x = x.data();
  std::vector<float> scratch(static_cast<std::size_t>(spmm_scratch(args)));
  ASSERT_EQ(std::ssize(scratch), kNodes * 32);
  for (const float* addend : {static_cast<const float*>(nullptr), add.data()}) {
    args.add = addend;
    std::vector<float> expected(x.size(), 7.0F);
    args.scratch = nullptr;
    args.y = expected.data();
    spmm(args, SerialExecutor());
    args.scratch = scratch.data();
    for (const std::int64_t workers : {1, 2, 3}) {
      std::vector<float> y(x.size(), 7.0F);
      args.y = y.data();
      spmm(args, ThreadPool(workers));
      EXPECT_TRUE(y == expected) << workers;
    }
  }
}

TEST(Spmm, WantsScratchWhereRowsComeOftenFromBeyondTheCache) {
  const auto wants = [](std::int64_t nodes, std::int64_t edges, std::int64_t width) {
    const graph::Gso gso = graph::make_gso(graph::make_random_connected(nodes, edges, 1));
    SpmmBatch<float> args;
    args.a = gso.view<float>();
    args.width = width;
    return spmm_scratch(args) > 0;
  };
  EXPECT_TRUE(wants(20'000, 100'000, 256));
  EXPECT_FALSE(wants(20'000, 40'000, 256));   // five entries a row
  EXPECT_FALSE(wants(20'000, 100'000, 32));   // one slice
  EXPECT_FALSE(wants(20'000, 100'000, 128));  // in a shared cache
  EXPECT_FALSE(wants(140'000, 700'000, 64));  // a slice would not stay in the shared one
}

}  // namespace
}  // namespace mpssm::engine
