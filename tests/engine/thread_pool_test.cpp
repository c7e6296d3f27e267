// SPDX-License-Identifier: MIT
#include "mpssm/engine/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <latch>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace mpssm::engine {
namespace {

/// A job that every worker takes part in: worker 0 stays until all have come.
class Gathering {
 public:
  explicit Gathering(std::int64_t workers) : all_(workers) {}
  void arrive() { all_.arrive_and_wait(); }

 private:
  std::latch all_;
};

TEST(ThreadPool, BringsEveryWorkerInAndWaits) {
  for (const std::int64_t workers : {1, 2, 5}) {
    const ThreadPool pool(workers);
    EXPECT_EQ(pool.workers(), workers);
    std::vector<int> calls(static_cast<std::size_t>(workers), 0);
    for (int round = 0; round < 100; ++round) {
      Gathering gathering(workers);
      pool.run([&](std::int64_t worker) {
        gathering.arrive();
        ++calls[static_cast<std::size_t>(worker)];
      });
    }
    EXPECT_EQ(calls, std::vector<int>(static_cast<std::size_t>(workers), 100));
  }
}

TEST(ThreadPool, CallsAWorkerAtMostOnceAndTheFirstAlways) {
  const ThreadPool pool(4);
  std::vector<int> calls(4, 0);
  constexpr int kRounds = 20000;
  int most = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<std::atomic<int>> now(4);
    pool.run([&](std::int64_t worker) {
      ++now[static_cast<std::size_t>(worker)];
      ++calls[static_cast<std::size_t>(worker)];
    });
    for (const std::atomic<int>& count : now) most = std::max<int>(most, count);
  }
  EXPECT_EQ(most, 1);
  EXPECT_EQ(calls[0], kRounds);
}

TEST(ThreadPool, WakesThreadsThatHaveGoneToSleep) {
  const ThreadPool pool(3);
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));  // longer than they stay awake
    Gathering gathering(3);
    std::atomic<int> calls{0};
    pool.run([&](std::int64_t worker) {
      gathering.arrive();
      // The caller comes to wait for somebody who takes his time, and sleeps.
      if (worker == 2) std::this_thread::sleep_for(std::chrono::milliseconds(10));
      ++calls;
    });
    EXPECT_EQ(calls, 3);
  }
}

TEST(ThreadPool, HasAtLeastOneWorker) { EXPECT_EQ(ThreadPool(0).workers(), 1); }

TEST(ThreadPool, CarriesOutWhatAWorkerThrows) {
  const ThreadPool pool(3);
  for (const std::int64_t thrower : {0, 2}) {
    Gathering gathering(3);
    EXPECT_THROW(pool.run([&](std::int64_t worker) {
      gathering.arrive();
      if (worker == thrower) throw std::runtime_error("one of them");
    }),
                 std::runtime_error);
  }
  std::atomic<int> calls{0};
  Gathering gathering(3);
  pool.run([&](std::int64_t) {
    gathering.arrive();
    ++calls;
  });
  EXPECT_EQ(calls, 3);
}

TEST(ThreadPool, RunsACallInsideACallOnItsOwnThread) {
  const ThreadPool pool(3);
  std::atomic<int> inner{0};
  Gathering gathering(3);
  pool.run([&](std::int64_t) {
    gathering.arrive();
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
