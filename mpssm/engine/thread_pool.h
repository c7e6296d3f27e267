// SPDX-License-Identifier: MIT
// A small pool for programs that have no threads of their own to give: workers sleep between calls.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "mpssm/engine/executor.h"

namespace mpssm::engine {

/// One call at a time: a second one, from another thread or from inside a worker, runs on its own
/// thread alone.
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
  /// What the threads share, all under `mutex`.
  struct State {
    std::mutex mutex;
    std::condition_variable wake;
    std::condition_variable done;
    const std::function<void(std::int64_t)>* job = nullptr;
    std::int64_t round = 0;    // counts jobs, so that a thread takes part in each once
    std::int64_t running = 0;  // threads that have not finished the job
    bool busy = false;
    bool stopping = false;
    std::exception_ptr error;
  };
  void serve(std::int64_t index) const;
  /// False if the threads are taken.
  bool start(const std::function<void(std::int64_t)>& worker) const;

  std::int64_t workers_;
  mutable State state_;
  std::vector<std::thread> threads_;
};

}  // namespace mpssm::engine
