// SPDX-License-Identifier: MIT
#include "mpssm/engine/thread_pool.h"

#include <algorithm>

namespace mpssm::engine {

std::uint64_t ThreadPool::pack(Gate gate) {
  return std::uint64_t{gate.round} << 32 | std::uint64_t{gate.seats} << 16 | gate.inside;
}

ThreadPool::Gate ThreadPool::unpack(std::uint64_t packed) {
  return {.round = static_cast<std::uint32_t>(packed >> 32),
          .seats = static_cast<std::uint16_t>(packed >> 16),
          .inside = static_cast<std::uint16_t>(packed)};
}

ThreadPool::ThreadPool(std::int64_t workers)
    : workers_(std::clamp<std::int64_t>(workers, 1, 1 << 15)) {
  for (std::int64_t i = 1; i < workers_; ++i) threads_.emplace_back([this] { serve(); });
}

ThreadPool::~ThreadPool() {
  stopping_ = true;
  workers_beds_.wake();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::serve() const {
  Patience patience;
  std::uint32_t seen = 0;
  const auto is_needed = [&] { return unpack(gate_).round != seen || stopping_; };
  while (true) {
    if (!patience.is_rewarded(is_needed)) workers_beds_.sleep_until(is_needed);
    if (stopping_) return;
    seen = join();
  }
}

std::uint32_t ThreadPool::join() const {
  std::uint64_t found = gate_;
  Gate gate = unpack(found);
  std::int64_t seat = 0;
  do {
    gate = unpack(found);
    if (gate.seats == 0) return gate.round;
    seat = gate.seats--;
    ++gate.inside;
  } while (!gate_.compare_exchange_weak(found, pack(gate)));
  try {
    (*job_)(seat);
  } catch (...) {
    if (!failed_.test_and_set()) error_ = std::current_exception();
  }
  if (unpack(gate_.fetch_sub(1)).inside == 1) callers_bed_.wake();
  return gate.round;
}

void ThreadPool::close() const {
  std::uint64_t found = gate_;
  Gate gate = unpack(found);
  do {
    gate = unpack(found);
    gate.seats = 0;
  } while (!gate_.compare_exchange_weak(found, pack(gate)));
  const auto have_left = [&] { return unpack(gate_).inside == 0; };
  if (!callers_patience_.is_rewarded(have_left)) callers_bed_.sleep_until(have_left);
}

void ThreadPool::run(const std::function<void(std::int64_t)>& worker) const {
  if (workers_ == 1 || taken_.exchange(true)) return worker(0);
  job_ = &worker;
  failed_.clear();
  error_ = nullptr;
  gate_ =
      pack({.round = unpack(gate_).round + 1, .seats = static_cast<std::uint16_t>(workers_ - 1)});
  workers_beds_.wake();
  std::exception_ptr own_error;
  try {
    worker(0);
  } catch (...) {
    own_error = std::current_exception();
  }
  close();
  const std::exception_ptr error = own_error ? own_error : error_;
  taken_ = false;
  if (error) std::rethrow_exception(error);
}

}  // namespace mpssm::engine
