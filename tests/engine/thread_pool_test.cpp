// SPDX-License-Identifier: MIT
#include "mpssm/engine/thread_pool.h"

#include <atomic>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace mpssm::engine {
namespace {

TEST(ThreadPool, CallsEachWorkerOnceAndWaits) {
  for (const std::int64_t workers : {1, 2, 5}) {
    const ThreadPool pool(workers);
    EXPECT_EQ(pool.workers(), workers);
    std::vector<int> calls(static_cast<std::size_t>(workers), 0);
    for (int round = 0; round < 100; ++round) {
      pool.run([&](std::int64_t worker) { ++calls[static_cast<std::size_t>(worker)]; });
    }
    EXPECT_EQ(calls, std::vector<int>(static_cast<std::size_t>(workers), 100));
  }
}

TEST(ThreadPool, HasAtLeastOneWorker) { EXPECT_EQ(ThreadPool(0).workers(), 1); }

TEST(ThreadPool, CarriesOutWhatAWorkerThrows) {
  const ThreadPool pool(3);
  for (const std::int64_t thrower : {0, 2}) {
    EXPECT_THROW(pool.run([&](std::int64_t worker) {
      if (worker == thrower) throw std::runtime_error("one of them");
    }),
                 std::runtime_error);
  }
  std::atomic<int> calls{0};
  pool.run([&](std::int64_t) { ++calls; });
  EXPECT_EQ(calls, 3);
}

TEST(ThreadPool, RunsACallInsideACallOnItsOwnThread) {
  const ThreadPool pool(3);
  std::atomic<int> inner{0};
  pool.run([&](std::int64_t) {
    pool.run([&](std::int64_t worker) {
      EXPECT_EQ(worker, 0);
      ++inner;
    });
  });
  EXPECT_EQ(inner, 3);
}

TEST(ThreadPool, ServesCallsFromSeveralThreads) {
  const ThreadPool pool(2);
  std::atomic<int> first{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        pool.run([&](std::int64_t worker) { first += worker == 0 ? 1 : 0; });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(first, 800);
}

}  // namespace
}  // namespace mpssm::engine
