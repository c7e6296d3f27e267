// SPDX-License-Identifier: MIT
#include "mpssm/engine/thread_pool.h"

#include <algorithm>

namespace mpssm::engine {

ThreadPool::ThreadPool(std::int64_t workers) : workers_(std::max<std::int64_t>(workers, 1)) {
  for (std::int64_t i = 1; i < workers_; ++i) threads_.emplace_back([this, i] { serve(i); });
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(state_.mutex);
    state_.stopping = true;
  }
  state_.wake.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::serve(std::int64_t index) const {
  std::int64_t seen = 0;
  std::unique_lock lock(state_.mutex);
  while (true) {
    state_.wake.wait(lock, [&] { return state_.stopping || state_.round != seen; });
    if (state_.stopping) return;
    seen = state_.round;
    const auto* job = state_.job;
    lock.unlock();
    std::exception_ptr error;
    try {
      (*job)(index);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error && !state_.error) state_.error = error;
    if (--state_.running == 0) state_.done.notify_all();
  }
}

bool ThreadPool::start(const std::function<void(std::int64_t)>& worker) const {
  const std::lock_guard lock(state_.mutex);
  if (state_.busy || workers_ == 1) return false;
  state_.busy = true;
  state_.job = &worker;
  state_.error = nullptr;
  state_.running = workers_ - 1;
  ++state_.round;
  return true;
}

void ThreadPool::run(const std::function<void(std::int64_t)>& worker) const {
  if (!start(worker)) return worker(0);
  state_.wake.notify_all();
  std::exception_ptr error;
  try {
    worker(0);
  } catch (...) {
    error = std::current_exception();
  }
  std::unique_lock lock(state_.mutex);
  state_.done.wait(lock, [&] { return state_.running == 0; });
  if (!error) error = state_.error;
  state_.busy = false;
  lock.unlock();
  if (error) std::rethrow_exception(error);
}

}  // namespace mpssm::engine
