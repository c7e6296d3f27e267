// SPDX-License-Identifier: MIT
// A pool for programs that own their process, with good manners on a machine that others use too.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "mpssm/engine/executor.h"
#include "mpssm/engine/patience.h"

namespace mpssm::engine {

/// Threads that join a call if they come in time: the caller never waits for one that has not
/// begun, only for those at work. One call at a time: a second one, from another thread or from
/// inside a worker, runs on its own thread alone.
class ThreadPool final : public Executor {
 public:
  /// `workers` threads, the calling one among them; at least one.
  explicit ThreadPool(std::int64_t workers);
  ~ThreadPool() override;
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  std::int64_t workers() const override { return workers_; }
  void run(const std::function<void(std::int64_t)>& worker) const override;

 private:
  /// All that the threads must agree on at once, in one number.
  struct Gate {
    std::uint32_t round = 0;   // counts calls
    std::uint16_t seats = 0;   // still free in this call
    std::uint16_t inside = 0;  // threads at work
  };
  static std::uint64_t pack(Gate gate);
  static Gate unpack(std::uint64_t packed);

  void serve() const;
  /// Takes a seat in the call at hand, if one is free, and works. The round it came to.
  std::uint32_t join() const;
  /// Lets no more threads in, and returns when those inside have left.
  void close() const;

  std::int64_t workers_;
  mutable std::atomic<std::uint64_t> gate_{0};
  mutable std::atomic<bool> taken_{false};
  mutable std::atomic<bool> stopping_{false};
  // Of the call at hand; written by the caller while nobody is inside.
  mutable const std::function<void(std::int64_t)>* job_ = nullptr;
  mutable std::atomic_flag failed_ = ATOMIC_FLAG_INIT;
  mutable std::exception_ptr error_;
  mutable Patience callers_patience_;
  mutable SleepingPlace workers_beds_;
  mutable SleepingPlace callers_bed_;
  std::vector<std::thread> threads_;
};

}  // namespace mpssm::engine
